package endpoint

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// asked reads the question in the query of a request for bytes.
func asked(r *http.Request, op spec.Op) (spec.Ask, error) {
	query := r.URL.Query()
	ask := spec.Ask{
		Op: op, Direction: spec.Direction(query.Get("direction")), Name: query.Get("name"), Key: query.Get("key"), URI: query.Get("uri"),
	}
	if text := query.Get("index"); text != "" {
		index, err := strconv.Atoi(text)
		if err != nil {
			return ask, refuse(http.StatusBadRequest, "index %.20q is no number", text)
		}
		ask.Index = index
	}
	return ask, nil
}

// read carries an object to the task.
func (s *server) read(w http.ResponseWriter, r *http.Request, a Attempt) error {
	ask, err := asked(r, spec.OpGet)
	if err != nil {
		return err
	}
	store, err := a.open(ask)
	if err != nil {
		return err
	}
	info, err := store.Stat(r.Context(), ask.Key)
	if err != nil {
		return err
	}
	object, err := store.Get(r.Context(), ask.Key)
	if err != nil {
		return err
	}
	defer object.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Cache-Control", "no-store")
	if info.Size >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(info.Size, 10))
	}
	if n, err := io.Copy(w, object); err != nil || info.Size >= 0 && n != info.Size {
		// The status is out. To break the connection off is the only way to say that this was not all.
		s.cfg.Log.Warn("an artifact could not be carried to its end", "task", a.Cmd.Path, "artifact", ask.Name, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// write carries an object to its store, which takes it whole or not at all.
func (s *server) write(w http.ResponseWriter, r *http.Request, a Attempt) error {
	ask, err := asked(r, spec.OpPut)
	if err != nil {
		return err
	}
	store, err := a.open(ask)
	if err != nil {
		return err
	}
	sent := &incoming{r: r.Body}
	if err := store.Put(r.Context(), ask.Key, sent, r.ContentLength); err != nil {
		if sent.err != nil {
			return &problem{status: http.StatusBadRequest, text: "the body broke off: try again", cause: errors.Join(sent.err, err)}
		}
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// incoming remembers that a body could not be read to its end.
type incoming struct {
	r   io.Reader
	err error
}

func (b *incoming) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// result keeps a result that is too long for a termination message.
func (s *server) result(w http.ResponseWriter, r *http.Request, a Attempt) error {
	select { // a result is held in memory, and may be large
	case s.results <- struct{}{}:
		defer func() { <-s.results }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	data, err := body(w, r, spec.MaxStored)
	if err != nil {
		return err
	}
	var result spec.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return refuse(http.StatusBadRequest, "the body is no result in JSON: %v", err)
	}
	if err := s.cfg.Results.Put(r.Context(), a.Run, a.Cmd.Path, data); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
