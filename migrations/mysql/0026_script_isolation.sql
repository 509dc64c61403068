-- What scripts are kept from on a node, as JSON; null until the node has tried it.
ALTER TABLE cluster_node ADD COLUMN script_isolation TEXT;

-- The secret that is a source's password, in place of a variable or a file.
ALTER TABLE data_source ADD COLUMN password_secret VARCHAR(255);
