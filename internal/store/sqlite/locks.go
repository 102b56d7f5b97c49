package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// AskLocks implements the ledger of package locks.
func (s *Store) AskLocks(ctx context.Context, owner, run, path string, locks []string, sizes []int) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		// Until its first grant an owner has a minute's lease.
		if _, err := tx.ExecContext(ctx, `INSERT INTO lock_owners (owner, expires) VALUES (?, (unixepoch('now') + 60) * 1000000000)
			ON CONFLICT (owner) DO NOTHING`, owner); err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, "UPDATE lock_tickets SET owner = ? WHERE run = ? AND path = ?", owner, run, path)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		for i, lock := range locks {
			if slices.Contains(locks[:i], lock) {
				continue
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO lock_tickets (ticket, run, path, lock, size, owner)
				SELECT COALESCE((SELECT MAX(ticket) FROM lock_tickets WHERE NOT (run = ?1 AND path = ?2)), 0) + 1, ?1, ?2, ?3, ?4, ?5`,
				run, path, lock, sizes[i], owner); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ask for locks: %w", err)
	}
	return nil
}

// ReleaseLocks implements the ledger of package locks.
func (s *Store) ReleaseLocks(ctx context.Context, run, path string) error {
	if _, err := s.db.Write.ExecContext(ctx, "DELETE FROM lock_tickets WHERE run = ? AND path = ?", run, path); err != nil {
		return fmt.Errorf("release locks: %w", err)
	}
	return nil
}

// DropLocks implements the ledger of package locks.
func (s *Store) DropLocks(ctx context.Context, owner string) error {
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		_, err1 := tx.ExecContext(ctx, "DELETE FROM lock_tickets WHERE owner = ?", owner)
		_, err2 := tx.ExecContext(ctx, "DELETE FROM lock_owners WHERE owner = ?", owner)
		return errors.Join(err1, err2)
	})
	if err != nil {
		return fmt.Errorf("drop locks: %w", err)
	}
	return nil
}

// request is what a node asks for: one row for each lock.
type request struct {
	run, path, owner string
	held             bool
	locks            []string
	sizes            []int
}

// GrantLocks implements the ledger of package locks.
func (s *Store) GrantLocks(ctx context.Context, owner string, now, expires time.Time) ([][2]string, error) {
	var mine [][2]string
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		_, err1 := tx.ExecContext(ctx, `INSERT INTO lock_owners (owner, expires) VALUES (?, ?)
			ON CONFLICT (owner) DO UPDATE SET expires = excluded.expires`, owner, expires.UnixNano())
		_, err2 := tx.ExecContext(ctx, `DELETE FROM lock_tickets WHERE owner NOT IN
			(SELECT owner FROM lock_owners WHERE expires >= ?)`, now.UnixNano())
		_, err3 := tx.ExecContext(ctx, "DELETE FROM lock_owners WHERE expires < ?", now.UnixNano())
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		queue, err := requests(ctx, tx)
		if err != nil {
			return err
		}
		before := map[string]int{}
		for _, r := range queue {
			free := true
			for i, lock := range r.locks {
				free = free && before[lock] < r.sizes[i]
				before[lock]++
			}
			if !r.held && free {
				if _, err := tx.ExecContext(ctx, "UPDATE lock_tickets SET held = 1 WHERE run = ? AND path = ?", r.run, r.path); err != nil {
					return err
				}
				r.held = true
			}
			if r.held && r.owner == owner {
				mine = append(mine, [2]string{r.run, r.path})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("grant locks: %w", err)
	}
	return mine, nil
}

// requests gives all requests in the order of asking.
func requests(ctx context.Context, tx *sql.Tx) (_ []*request, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT run, path, lock, size, held, owner FROM lock_tickets ORDER BY ticket, run, path, lock")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var queue []*request
	for rows.Next() {
		var r request
		var lock string
		var size int
		if err := rows.Scan(&r.run, &r.path, &lock, &size, &r.held, &r.owner); err != nil {
			return nil, err
		}
		if last := len(queue) - 1; last < 0 || queue[last].run != r.run || queue[last].path != r.path {
			queue = append(queue, &r)
		}
		q := queue[len(queue)-1]
		q.locks, q.sizes = append(q.locks, lock), append(q.sizes, size)
	}
	return queue, rows.Err()
}

// LockHolders gives the paths of those that hold each lock, for package locks.
func (s *Store) LockHolders(ctx context.Context) (_ map[string][]string, err error) {
	rows, err := s.db.Read.QueryContext(ctx, "SELECT lock, path FROM lock_tickets WHERE held = 1 ORDER BY ticket, path")
	if err != nil {
		return nil, fmt.Errorf("list the holders of locks: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	out := map[string][]string{}
	for rows.Next() {
		var lock, path string
		if err := rows.Scan(&lock, &path); err != nil {
			return nil, fmt.Errorf("list the holders of locks: %w", err)
		}
		out[lock] = append(out[lock], path)
	}
	return out, rows.Err()
}
