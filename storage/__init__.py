"""Everything heed remembers: tables, repositories, migrations and atomic files. Knows no model and no platform."""
