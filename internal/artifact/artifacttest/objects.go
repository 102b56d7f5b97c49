// Package artifacttest stands in for stores in tests.
package artifacttest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Objects is a server that keeps what it is given: plain HTTP, and as much of S3 as stores use.
type Objects struct {
	// Signed refuses requests that carry no signature. Fault, when not nil, gives a status to answer a request with instead; 0
	// is none. They are set before the first request.
	Signed bool
	Fault  func(r *http.Request) int

	mu      sync.Mutex
	data    map[string][]byte
	uploads map[string]map[string][]byte
	seen    []http.Header
}

// NewObjects makes one that holds nothing.
func NewObjects() *Objects {
	return &Objects{data: map[string][]byte{}, uploads: map[string]map[string][]byte{}}
}

// ServeHTTP implements [http.Handler].
func (o *Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, r.Header.Clone())
	query := r.URL.Query()
	if o.Fault != nil {
		if status := o.Fault(r); status != 0 {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			return
		}
	}
	if o.Signed && !query.Has("X-Amz-Signature") && r.Header.Get("Authorization") == "" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	switch {
	case r.Method == http.MethodGet && query.Get("list-type") == "2":
		o.list(w, r)
	case r.Method == http.MethodGet && query.Has("location"):
		fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`)
	case r.Method == http.MethodPost && query.Has("uploads"):
		o.uploads["u"] = map[string][]byte{}
		fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		var whole []byte
		for i := 1; o.uploads["u"][fmt.Sprint(i)] != nil; i++ {
			whole = append(whole, o.uploads["u"][fmt.Sprint(i)]...)
		}
		o.data[r.URL.Path] = whole
		delete(o.uploads, "u")
		fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodPut:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
			body = unchunk(body)
		}
		w.Header().Set("ETag", `"e"`)
		if query.Has("partNumber") {
			o.uploads["u"][query.Get("partNumber")] = append([]byte{}, body...)
			return
		}
		o.data[r.URL.Path] = body
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		delete(o.uploads, query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(o.data, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		body, there := o.data[r.URL.Path]
		if !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	}
}

// Seen are the headers of all requests so far.
func (o *Objects) Seen() []http.Header {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

// Names are the paths of all objects, in order.
func (o *Objects) Names() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.data))
}

// Object is what lies at a path, such as "/bucket/key".
func (o *Objects) Object(path string) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.data[path])
}

// Uploads is how many uploads in parts are unfinished.
func (o *Objects) Uploads() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.uploads)
}

func (o *Objects) list(w http.ResponseWriter, r *http.Request) {
	prefix := strings.TrimSuffix(r.URL.Path, "/") + "/" + r.URL.Query().Get("prefix")
	fmt.Fprint(w, `<ListBucketResult><IsTruncated>false</IsTruncated>`)
	for _, name := range slices.Sorted(maps.Keys(o.data)) {
		if strings.HasPrefix(name, prefix) {
			key := strings.TrimPrefix(name, strings.TrimSuffix(r.URL.Path, "/")+"/")
			fmt.Fprintf(w, //nolint:gosec // a test's own keys
				`<Contents><Key>%s</Key><Size>%d</Size><LastModified>2006-01-02T15:04:05Z</LastModified></Contents>`, key, len(o.data[name]))
		}
	}
	fmt.Fprint(w, `</ListBucketResult>`)
}

// unchunk takes the bytes out of a body in S3's signed chunks: "size;signature\r\nbytes\r\n" each.
func unchunk(body []byte) []byte {
	var out []byte
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\r\n"))
		var size int
		if _, err := fmt.Sscanf(string(line), "%x", &size); err != nil || size == 0 {
			break
		}
		out = append(out, rest[:size]...)
		body = rest[size+2:]
	}
	return out
}
