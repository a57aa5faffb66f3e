"""The plugins that come with makeway itself."""
