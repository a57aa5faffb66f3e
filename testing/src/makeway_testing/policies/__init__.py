"""Small policies that contracts need beside the plugin under test."""
