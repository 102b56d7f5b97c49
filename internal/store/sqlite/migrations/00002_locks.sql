-- +goose Up
-- One row for each lock that a node of a run holds or waits for. Tickets number the requests in the order of asking.
CREATE TABLE lock_tickets (
    ticket  INTEGER NOT NULL,
    run     TEXT    NOT NULL,
    path    TEXT    NOT NULL,
    lock    TEXT    NOT NULL,
    size    INTEGER NOT NULL,
    held    INTEGER NOT NULL DEFAULT 0,
    owner   TEXT    NOT NULL,
    PRIMARY KEY (run, path, lock)
) STRICT, WITHOUT ROWID;
CREATE INDEX lock_tickets_by_lock ON lock_tickets (lock, ticket);

-- The processes that own tickets. One that stops renewing its lease loses them.
CREATE TABLE lock_owners (
    owner   TEXT    PRIMARY KEY,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- +goose Down
DROP TABLE lock_owners;
DROP TABLE lock_tickets;
