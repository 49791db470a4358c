"""Files as other programs write them: one table of forms, recognised by what they hold, for every verb that reads."""
