-- +goose Up
-- outputs is JSON; times are milliseconds since 1970.
CREATE TABLE cache_entry (
    scope        TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    outputs      TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    workflow     TEXT    NOT NULL,
    workflow_uid TEXT    NOT NULL,
    task         TEXT    NOT NULL,
    hits         INTEGER NOT NULL DEFAULT 0,
    last_hit     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX cache_entry_created ON cache_entry (created);

-- +goose Down
DROP TABLE cache_entry;
