-- Events that have come.

-- event_key: keys under which events were sent, for a month, so that one that is sent again fires nothing.
CREATE TABLE event_key (
    event_name VARCHAR(100) NOT NULL,
    event_key VARCHAR(100) NOT NULL,
    create_time DATETIME(3) NOT NULL,
    PRIMARY KEY (event_name, event_key)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE INDEX ix_event_key_time ON event_key (create_time);
