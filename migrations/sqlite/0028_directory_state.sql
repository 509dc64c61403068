-- Why the directory does not let a user in any more, as it was found when accounts were looked at again: sessions are ended
-- and tokens do not work while it is set. Null: nothing is known against the user.
ALTER TABLE app_user ADD COLUMN directory_closed TEXT;
