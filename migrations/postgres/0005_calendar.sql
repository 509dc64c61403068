-- Calendars of working days.

-- calendar: a weekend, the years whose list of days is there, or what it is combined of.
CREATE TABLE calendar (
    calendar_code VARCHAR(50) NOT NULL PRIMARY KEY,
    calendar_name VARCHAR(255) NOT NULL,
    weekend VARCHAR(50) NOT NULL,
    years TEXT NOT NULL,
    combine_how VARCHAR(10),
    members TEXT,
    create_time TIMESTAMPTZ(3) NOT NULL,
    update_time TIMESTAMPTZ(3) NOT NULL
);

-- calendar_day: holidays, and weekend days that are worked; list_year is empty for a day set by hand.
CREATE TABLE calendar_day (
    calendar_code VARCHAR(50) NOT NULL REFERENCES calendar (calendar_code),
    calendar_date VARCHAR(10) NOT NULL,
    kind VARCHAR(4) NOT NULL,
    label TEXT,
    list_year INTEGER,
    PRIMARY KEY (calendar_code, calendar_date)
);

INSERT INTO job_lock (lock_name) VALUES ('calendar_lock');
