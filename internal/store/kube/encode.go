package kube

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sluice-ml/sluice/internal/engine"
)

// A value is a byte that says its form, the number of events in it (uvarint; 0 where it is none), the ID of the
// process that wrote it (8 bytes), and the JSON, deflated.
const (
	inline   = 1 // the JSON follows
	referred = 2 // the JSON is that of a blobRef
)

// writerBytes is the length of a writer's ID. It tells apart what two processes write that have the same to say.
const writerBytes = 8

type writer [writerBytes]byte

// dictionary is what deflate finds repetitions in, besides the value itself: most values are one event of some 200 bytes.
// It is part of the stored form. A better one needs a form of its own.
const dictionary = `{"uri":"s3://","type":"system.Artifact","metadata":{"lastTransition":"template":"pipelineName":"labels":{"annotations":{` +
	`"placeholders":{"state":{"decision":"Retry""decision":"Done""decision":"Reuse""decision":"Skip","message":"waiting for hook ` +
	`connection refused, attempt 1","progress":"0/1"}}]},{"time":"2027-01-01T00:00:00.000000000Z","seed":1000000000000000000,` +
	`"noted":{"node":1,"message":"Pod is Pending: ContainerCreating"}},{"time":"2026-12-01T12:00:00Z","acquired":{"node":1}},` +
	`{"time":"2026-12-01T12:00:00Z","start":{"run":{"name":"","uid":"","namespace":"default","created":"2026-12-01T12:00:00Z",` +
	`"parameters":{"artifactRoot":"hooks":[{"name":"pre":true,"post":true,"task":true,"maxRetries":1,"settings":{` +
	`{"time":"2026-12-01T12:00:00Z","seed":10000000000000000000,"fired":{"timer":{"kind":"Deadline","node":1,"at":"2026-12-01T12:00:00Z"}}},` +
	`{"time":"2026-12-01T12:00:00Z","seed":10000000000000000000,"answered":{"node":10,"point":"Pre","hook":"cache","answer":{"decision":"Run"}}},` +
	`{"time":"2026-12-01T12:00:00Z","seed":10000000000000000000,"answered":{"node":10,"point":"Post","hook":"lineage","answer":{"decision":"Done"}}},` +
	`{"time":"2026-12-01T12:00:00Z","seed":10000000000000000000,"finished":{"node":10,"result":{"phase":"Error","message":` +
	`"OOMKilled (exit code 137)","outputs":{"artifacts":{"main-logs":[{"name":"main-logs","key":"path":"/tmp/"}]},"transient":true,` +
	`{"time":"2026-12-01T12:00:00Z","seed":10000000000000000000,"finished":{"node":10,"result":{"phase":"Failed","exitCode":1,"message":"Error (exit code 1)","outputs":` +
	`{"time":"2026-12-01T12:00:00.000000000Z","seed":10000000000000000000,"running":{"node":100,"host":"ip-10-0-0-1.ec2.internal","ip":"10.244.0.10"}},` +
	`{"time":"2026-12-01T12:00:00.000000000Z","seed":10000000000000000000,"finished":{"node":100,"result":{"phase":"Succeeded","exitCode":0,` +
	`"outputs":{"parameters":{"result":"0"},"result":""},"started":"2026-12-01T12:00:00Z","host":"ip-10-0-0-1.ec2.internal","resources":{"cpu":1,"memory":10}}}}]`

// packer keeps the tables of deflate, which are large, from one value to the next.
type packer struct {
	pool sync.Pool
}

// pack gives a value that holds a text. Equal arguments give equal bytes.
func (p *packer) pack(form byte, n int, w writer, text []byte) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, 64+len(text)/3))
	out.WriteByte(form)
	out.Write(binary.AppendUvarint(nil, uint64(n)))
	out.Write(w[:])
	deflate, ok := p.pool.Get().(*flate.Writer)
	if ok {
		deflate.Reset(out)
	} else {
		var err error
		if deflate, err = flate.NewWriterDict(out, flate.DefaultCompression, []byte(dictionary)); err != nil {
			return nil, err
		}
	}
	defer p.pool.Put(deflate)
	if _, err := deflate.Write(text); err != nil {
		return nil, err
	}
	if err := deflate.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// header is the beginning of a value.
type header struct {
	form   byte
	events int
	rest   []byte
}

func readHeader(value []byte) (header, error) {
	if len(value) == 0 {
		return header{}, errors.New("it is empty")
	}
	h := header{form: value[0]}
	if h.form != inline && h.form != referred {
		return header{}, fmt.Errorf("it has form %d, which this version does not know", h.form)
	}
	n, size := binary.Uvarint(value[1:])
	if size <= 0 || n > 1<<31 || len(value) < 1+size+writerBytes {
		return header{}, errors.New("it is cut short")
	}
	h.events, h.rest = int(n), value[1+size+writerBytes:]
	return h, nil
}

// unpack gives the text of a value's rest.
func unpack(rest []byte) ([]byte, error) {
	text, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(rest), []byte(dictionary)))
	if err != nil {
		return nil, fmt.Errorf("inflate: %w", err)
	}
	return text, nil
}

// encode gives the events as a JSON list.
func encode(events []engine.Event) ([]byte, error) {
	text := []byte{'['}
	for i, e := range events {
		one, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		if len(one) > MaxEvent {
			return nil, fmt.Errorf("%w: one of %d bytes, more than %d", ErrTooLarge, len(one), MaxEvent)
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, one...)
	}
	return append(text, ']'), nil
}
