package metadata

import (
	"context"
	"fmt"
	"slices"
)

// Direction says which way lineage is followed.
type Direction string

// The directions.
const (
	// Up goes to what an artifact was made from.
	Up Direction = "up"
	// Down goes to what was made from it.
	Down Direction = "down"
	Both Direction = "both"
)

// LineageOptions bound a lineage query.
type LineageOptions struct {
	// Direction is Both by default.
	Direction Direction
	// Depth is the number of executions on a way from the artifact; 0 is 20.
	Depth int
	// MaxNodes bounds artifacts and executions together; 0 is 5000.
	MaxNodes int
}

// Lineage is what an artifact was made from and what was made from it.
type Lineage struct {
	Artifacts  []Artifact  `json:"artifacts"`
	Executions []Execution `json:"executions"`
	Events     []Event     `json:"events"`
	// Truncated says that there is more than the options allowed.
	Truncated bool `json:"truncated,omitempty"`
}

// idsPerQuery keeps IN lists within what SQLite takes.
const idsPerQuery = 500

// Lineage follows the events from an artifact. The error is ErrNotFound where there is no such artifact.
func (s *Store) Lineage(ctx context.Context, artifactID int64, options LineageOptions) (*Lineage, error) {
	start, err := s.ArtifactsByID(ctx, artifactID)
	if err != nil {
		return nil, err
	}
	if len(start) == 0 {
		return nil, fmt.Errorf("metadata: artifact %d: %w", artifactID, ErrNotFound)
	}
	if options.Depth <= 0 {
		options.Depth = 20
	}
	if options.MaxNodes <= 0 {
		options.MaxNodes = 5000
	}
	w := walk{store: s, options: options, artifacts: map[int64]bool{artifactID: true}, executions: map[int64]bool{}, events: map[string]bool{}}
	if options.Direction != Down {
		if err := w.follow(ctx, artifactID, Output, Input); err != nil {
			return nil, err
		}
	}
	if options.Direction != Up {
		if err := w.follow(ctx, artifactID, Input, Output); err != nil {
			return nil, err
		}
	}
	out := &Lineage{Events: w.list, Truncated: w.truncated}
	for _, ids := range chunks(w.artifacts) {
		list, err := s.ArtifactsByID(ctx, ids...)
		if err != nil {
			return nil, err
		}
		out.Artifacts = append(out.Artifacts, list...)
	}
	for _, ids := range chunks(w.executions) {
		list, err := s.ExecutionsByID(ctx, ids...)
		if err != nil {
			return nil, err
		}
		out.Executions = append(out.Executions, list...)
	}
	return out, nil
}

// walk is a search, breadth first, from artifacts over events to executions and on.
type walk struct {
	store                 *Store
	options               LineageOptions
	artifacts, executions map[int64]bool
	events                map[string]bool
	list                  []Event
	truncated             bool
}

// follow goes from an artifact over events of type first to executions, and from these over events of type second to
// artifacts, again and again.
func (w *walk) follow(ctx context.Context, artifactID int64, first, second EventType) error {
	// What was seen on the other way may still have to be passed on this one.
	seenArtifacts, seenExecutions := map[int64]bool{artifactID: true}, map[int64]bool{}
	frontier := map[int64]bool{artifactID: true}
	for depth := 0; len(frontier) > 0; depth++ {
		if depth == w.options.Depth {
			w.truncated = true
			return nil
		}
		executions := map[int64]bool{}
		for _, ids := range chunks(frontier) {
			events, err := w.store.EventsByArtifactIDs(ctx, ids...)
			if err != nil {
				return err
			}
			for _, e := range events {
				if e.Type == first && w.take(e) && !seenExecutions[e.ExecutionID] {
					seenExecutions[e.ExecutionID] = true
					executions[e.ExecutionID] = true
				}
			}
		}
		frontier = map[int64]bool{}
		for _, ids := range chunks(executions) {
			events, err := w.store.EventsByExecutionIDs(ctx, ids...)
			if err != nil {
				return err
			}
			for _, e := range events {
				if e.Type == second && w.take(e) && !seenArtifacts[e.ArtifactID] {
					seenArtifacts[e.ArtifactID] = true
					frontier[e.ArtifactID] = true
				}
			}
		}
	}
	return nil
}

// take adds an event with its ends; it is false where the bound is reached.
func (w *walk) take(e Event) bool {
	more := 0
	if !w.artifacts[e.ArtifactID] {
		more++
	}
	if !w.executions[e.ExecutionID] {
		more++
	}
	if len(w.artifacts)+len(w.executions)+more > w.options.MaxNodes {
		w.truncated = true
		return false
	}
	w.artifacts[e.ArtifactID], w.executions[e.ExecutionID] = true, true
	if key := fmt.Sprint(e.ArtifactID, e.ExecutionID, e.Type, e.Path); !w.events[key] {
		w.events[key] = true
		w.list = append(w.list, e)
	}
	return true
}

// chunks gives the ids of a set in ascending order, in lists that a query can take.
func chunks(set map[int64]bool) [][]int64 {
	ids := make([]int64, 0, len(set))
	for id := range set {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Collect(slices.Chunk(ids, idsPerQuery))
}
