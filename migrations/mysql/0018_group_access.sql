-- Data sources and secrets belong to groups. owner_group may always use it; allowed_groups is a JSON list of the groups
-- that may, too. Where both are null every group may, as before.
ALTER TABLE data_source ADD COLUMN owner_group VARCHAR(64);

ALTER TABLE data_source ADD COLUMN allowed_groups TEXT;

ALTER TABLE sealed_secret ADD COLUMN owner_group VARCHAR(64);

ALTER TABLE sealed_secret ADD COLUMN allowed_groups TEXT;
