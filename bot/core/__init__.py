"""Services that know no platform: gateway, feedback mapping, learning."""
