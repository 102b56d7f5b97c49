-- +goose Up
CREATE TABLE runs (
    id         INTEGER PRIMARY KEY,
    uid        TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    namespace  TEXT    NOT NULL DEFAULT '',
    language   TEXT    NOT NULL,
    phase      TEXT    NOT NULL,
    message    TEXT    NOT NULL DEFAULT '',
    created    INTEGER NOT NULL, -- all times are nanoseconds since 1970, UTC; 0 is none
    started    INTEGER NOT NULL DEFAULT 0,
    finished   INTEGER NOT NULL DEFAULT 0,
    labels     TEXT    NOT NULL DEFAULT '{}',
    file       TEXT    NOT NULL DEFAULT '',
    summary    TEXT    NOT NULL DEFAULT '{}',
    submission BLOB    NOT NULL
) STRICT;
CREATE INDEX runs_by_name ON runs (name, id);
CREATE INDEX runs_by_created ON runs (created, id);

CREATE TABLE events (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    json     TEXT    NOT NULL,
    PRIMARY KEY (run, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    run      INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    state    BLOB    NOT NULL
) STRICT;

-- +goose Down
DROP TABLE snapshots;
DROP TABLE events;
DROP TABLE runs;
