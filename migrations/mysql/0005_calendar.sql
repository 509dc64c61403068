-- Calendars of working days.

-- calendar: a weekend, the years whose list of days is there, or what it is combined of.
CREATE TABLE calendar (
    calendar_code VARCHAR(50) NOT NULL PRIMARY KEY,
    calendar_name VARCHAR(255) NOT NULL,
    weekend VARCHAR(50) NOT NULL,
    years TEXT NOT NULL,
    combine_how VARCHAR(10),
    members TEXT,
    create_time DATETIME(3) NOT NULL,
    update_time DATETIME(3) NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- calendar_day: holidays, and weekend days that are worked; list_year is empty for a day set by hand.
CREATE TABLE calendar_day (
    calendar_code VARCHAR(50) NOT NULL,
    calendar_date VARCHAR(10) NOT NULL,
    kind VARCHAR(4) NOT NULL,
    label TEXT,
    list_year INT,
    PRIMARY KEY (calendar_code, calendar_date),
    FOREIGN KEY (calendar_code) REFERENCES calendar (calendar_code)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

INSERT INTO job_lock (lock_name) VALUES ('calendar_lock');
