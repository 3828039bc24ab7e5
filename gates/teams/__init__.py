"""Teams: their questions, their times, their calendars."""
