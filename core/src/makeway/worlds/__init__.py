"""The worlds that jobs run in: they know the time, perform actions and report events; they decide nothing."""
