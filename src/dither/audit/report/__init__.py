"""Writes the report of an audit: `report` as JSON, `page` as one HTML page, `svg` its drawings."""
