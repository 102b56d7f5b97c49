package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/store"
)

// List implements [store.Store]. A cursor is the creation time and row of the last run of a page, so that runs which
// come or go between two pages shift nothing.
func (s *Store) List(ctx context.Context, f store.Filter) (_ []store.Run, _ string, err error) {
	where, args, err := conditions(f)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	query := "SELECT " + runColumns + " FROM runs"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY created DESC, id DESC"
	if f.Limit > 0 {
		query += " LIMIT " + strconv.Itoa(f.Limit+1)
	}
	rows, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var runs []store.Run
	var cursor string
	for rows.Next() {
		if f.Limit > 0 && len(runs) == f.Limit {
			return runs, cursor, nil
		}
		r, id, err := scanRun(rows)
		if err != nil {
			return nil, "", fmt.Errorf("list runs: %w", err)
		}
		runs = append(runs, r)
		cursor = fmt.Sprintf("%d.%d", nanos(r.Created), id)
	}
	if err := rows.Err(); err != nil {
		return nil, "", fmt.Errorf("list runs: %w", err)
	}
	return runs, "", nil
}

func conditions(f store.Filter) (where []string, args []any, err error) {
	add := func(cond string, values ...any) {
		where, args = append(where, cond), append(args, values...)
	}
	if len(f.Phases) > 0 {
		marks := make([]string, len(f.Phases))
		for i, p := range f.Phases {
			marks[i] = "?"
			args = append(args, string(p))
		}
		where = append(where, "phase IN ("+strings.Join(marks, ", ")+")")
	}
	if f.Language != "" {
		add("language = ?", f.Language)
	}
	if f.Namespace != "" {
		add("namespace = ?", f.Namespace)
	}
	if f.NamePrefix != "" {
		add("substr(name, 1, ?) = ?", len([]rune(f.NamePrefix)), f.NamePrefix)
	}
	if !f.Since.IsZero() {
		add("created >= ?", nanos(f.Since))
	}
	if !f.Until.IsZero() {
		add("created < ?", nanos(f.Until))
	}
	for _, t := range f.Labels {
		value := "(SELECT value FROM json_each(labels) WHERE key = ?)"
		switch {
		case t.Exists && t.Not:
			add(value+" IS NULL", t.Key)
		case t.Exists:
			add(value+" IS NOT NULL", t.Key)
		case t.Not:
			add(value+" IS NOT ?", t.Key, t.Value)
		default:
			add(value+" = ?", t.Key, t.Value)
		}
	}
	if f.After != "" {
		created, id, ok := strings.Cut(f.After, ".")
		c, err1 := strconv.ParseInt(created, 10, 64)
		i, err2 := strconv.ParseInt(id, 10, 64)
		if !ok || err1 != nil || err2 != nil {
			return nil, nil, fmt.Errorf("%q is no cursor of an earlier page", f.After)
		}
		add("(created, id) < (?, ?)", c, i)
	}
	return where, args, nil
}
