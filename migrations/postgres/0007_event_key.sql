-- Events that have come.

-- event_key: keys under which events were sent, for a month, so that one that is sent again fires nothing.
CREATE TABLE event_key (
    event_name VARCHAR(100) NOT NULL,
    event_key VARCHAR(100) NOT NULL,
    create_time TIMESTAMPTZ(3) NOT NULL,
    PRIMARY KEY (event_name, event_key)
);

CREATE INDEX ix_event_key_time ON event_key (create_time);
