-- Calendars of working days.

-- calendar: a weekend, the years whose list of days is there, or what it is combined of.
CREATE TABLE calendar (
    calendar_code TEXT NOT NULL PRIMARY KEY,
    calendar_name TEXT NOT NULL,
    weekend TEXT NOT NULL,
    years TEXT NOT NULL,
    combine_how TEXT,
    members TEXT,
    create_time TEXT NOT NULL,
    update_time TEXT NOT NULL
);

-- calendar_day: holidays, and weekend days that are worked; list_year is empty for a day set by hand.
CREATE TABLE calendar_day (
    calendar_code TEXT NOT NULL REFERENCES calendar (calendar_code),
    calendar_date TEXT NOT NULL,
    kind TEXT NOT NULL,
    label TEXT,
    list_year INTEGER,
    PRIMARY KEY (calendar_code, calendar_date)
);

INSERT INTO job_lock (lock_name) VALUES ('calendar_lock');
