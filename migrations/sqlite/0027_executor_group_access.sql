-- Groups of executors belong to groups, as data sources and secrets do. owner_group may always use it; allowed_groups is a
-- JSON list of the groups that may, too. Where both are null every group may, as before.
ALTER TABLE executor_group ADD COLUMN owner_group TEXT;

ALTER TABLE executor_group ADD COLUMN allowed_groups TEXT;
