package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// artifact is one of the attempt's as a store. ask says which.
type artifact struct {
	client *Client
	ask    spec.Ask
}

func (a *artifact) question(op spec.Op, key string) spec.Ask {
	ask := a.ask
	ask.Op, ask.Key = op, key
	return ask
}

// Stat implements [transfer.Store].
func (a *artifact) Stat(ctx context.Context, key string) (transfer.Info, error) {
	answer, err := a.client.ask(ctx, a.question(spec.OpStat, key))
	if err != nil {
		return transfer.Info{}, err
	}
	if answer.Info == nil {
		return transfer.Info{}, errNonsense
	}
	return transfer.Info{Size: answer.Info.Size, Tree: answer.Info.Tree}, nil
}

// List implements [transfer.Store].
func (a *artifact) List(ctx context.Context, key string) ([]transfer.Info, error) {
	answer, err := a.client.ask(ctx, a.question(spec.OpList, key))
	if err != nil {
		return nil, err
	}
	found := make([]transfer.Info, len(answer.Items))
	for i, o := range answer.Items {
		found[i] = transfer.Info{Key: o.Key, Size: o.Size, Tree: o.Tree}
	}
	return found, nil
}

// Delete implements [transfer.Store].
func (a *artifact) Delete(ctx context.Context, key string) error {
	_, err := a.client.ask(ctx, a.question(spec.OpDelete, key))
	return err
}

// errNonsense says that an answer lacks what it must have.
var errNonsense = errors.New("the task endpoint's answer lacks what was asked for: its version does not fit this executor's")

// Get implements [transfer.Store].
func (a *artifact) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	var body io.ReadCloser
	err := a.client.retry(ctx, func() error {
		answer, err := a.client.askOnce(ctx, a.question(spec.OpGet, key))
		if err != nil {
			return err
		}
		if answer.Request == nil {
			return errNonsense
		}
		r, err := a.client.send(ctx, *answer.Request, nil, 0) //nolint:bodyclose // whoever gets the stream closes it
		if err != nil {
			return err
		}
		body = &stream{r.Body}
		return nil
	})
	return body, err
}

// stream marks the errors of a body that ends too early.
type stream struct{ io.ReadCloser }

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = &broken{fmt.Errorf("the transfer broke off: %w", err)}
	}
	return n, err
}

// Put implements [transfer.Store]. What fits into a chunk is sent in one piece, again and again if need be; more than that in
// parts where the store takes parts, else as it comes.
func (a *artifact) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	var head bytes.Buffer
	chunk := a.client.cfg.Chunk
	if _, err := io.CopyN(&head, r, chunk+1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if int64(head.Len()) <= chunk {
		return a.putWhole(ctx, key, head.Bytes())
	}
	ask := a.question(spec.OpPut, key)
	ask.Size = size
	answer, err := a.client.ask(ctx, ask)
	if err != nil {
		return err
	}
	rest := io.MultiReader(&head, r)
	switch {
	case answer.Upload != "":
		return a.putParts(ctx, key, rest, answer)
	case answer.Request != nil:
		return a.putStream(ctx, *answer.Request, rest, size)
	}
	return errNonsense
}

// putWhole stores an object that is in memory.
func (a *artifact) putWhole(ctx context.Context, key string, data []byte) error {
	ask := a.question(spec.OpPut, key)
	ask.Size = int64(len(data))
	return a.client.retry(ctx, func() error {
		answer, err := a.client.askOnce(ctx, ask)
		if err != nil {
			return err
		}
		if answer.Request == nil {
			return errNonsense
		}
		r, err := a.client.send(ctx, *answer.Request, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		return r.Body.Close()
	})
}

// putStream sends bytes as they come; they cannot come a second time.
func (a *artifact) putStream(ctx context.Context, what spec.Request, r io.Reader, size int64) error {
	source := &source{r: r}
	answer, err := a.client.send(ctx, what, source, size)
	if err == nil {
		return answer.Body.Close()
	}
	if source.err != nil {
		return source.err // not the way there has failed
	}
	var soft *passing
	var old *stale
	if errors.As(err, &soft) || errors.As(err, &old) {
		return &broken{err}
	}
	return err
}

// source remembers that what is to be sent could not be read.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// growAfter is how many parts have one size where the whole is not known; the next are twice as large. S3 takes 10,000.
const growAfter = 1000

// putParts stores an object part by part.
func (a *artifact) putParts(ctx context.Context, key string, r io.Reader, upload spec.Answer) error {
	size, grows := upload.PartSize, false
	if size <= 0 {
		size, grows = a.client.cfg.Chunk, true
	}
	var parts []spec.Part
	var buffer bytes.Buffer
	for number := 1; ; number++ {
		if grows && number > 1 && number%growAfter == 1 {
			size *= 2
		}
		buffer.Reset()
		_, err := io.CopyN(&buffer, r, size)
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return errors.Join(err, a.abort(ctx, key, upload.Upload))
		}
		if last && buffer.Len() == 0 {
			break
		}
		part, err := a.putPart(ctx, key, upload.Upload, number, buffer.Bytes())
		if err != nil {
			return errors.Join(err, a.abort(ctx, key, upload.Upload))
		}
		parts = append(parts, part)
		if last {
			break
		}
	}
	finish := a.question(spec.OpFinish, key)
	finish.Upload, finish.Parts = upload.Upload, parts
	_, err := a.client.ask(ctx, finish)
	return err
}

func (a *artifact) putPart(ctx context.Context, key, upload string, number int, data []byte) (spec.Part, error) {
	ask := a.question(spec.OpPart, key)
	ask.Upload, ask.Part, ask.Size = upload, number, int64(len(data))
	part := spec.Part{Number: number}
	err := a.client.retry(ctx, func() error {
		answer, err := a.client.askOnce(ctx, ask)
		if err != nil {
			return err
		}
		if answer.Request == nil {
			return errNonsense
		}
		r, err := a.client.send(ctx, *answer.Request, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		part.ETag = r.Header.Get("ETag")
		return r.Body.Close()
	})
	return part, err
}

// abortTime bounds the end of an upload that has failed.
const abortTime = 5 * time.Second

// abort throws away what was sent of an upload, so that it does not lie in the store unseen. It tries once.
func (a *artifact) abort(ctx context.Context, key, upload string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	ask := a.question(spec.OpAbort, key)
	ask.Upload = upload
	_, err := a.client.askOnce(ctx, ask)
	return settled(err)
}
