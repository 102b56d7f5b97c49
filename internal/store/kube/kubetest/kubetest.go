// Package kubetest is a small API server in memory, for tests of what speaks to one: it keeps namespaced objects of any kind
// as JSON, with resourceVersion, merge patches and metadata-only answers as the real one has them, counts bytes, and can
// play the failures of a network. It checks no schema and has no watches.
package kubetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Object is an object as JSON.
type Object = map[string]any

// Fault is what happens to a request instead of, or after, being carried out.
type Fault int

// The faults.
const (
	// None: it is carried out and answered.
	None Fault = iota
	// Lost: it is carried out, and the connection breaks before the answer.
	Lost
	// Dropped: the connection breaks before it is carried out.
	Dropped
	// Failed: it is not carried out, and the answer is an internal error.
	Failed
	// Twice: it is carried out twice, as by a proxy that tries again, and the second answer comes back.
	Twice
)

// Server is the API server.
type Server struct {
	http *httptest.Server

	mu      sync.Mutex
	version int
	objects map[string]Object // by path
	counted Counts
	fault   func(method, path string) Fault
}

// Counts are totals since the start: requests that change something, the bytes of their bodies and of all answers.
type Counts struct{ Writes, Sent, Received int }

// New gives a server that ends with the test.
func New(t testing.TB) *Server {
	s := &Server{objects: map[string]Object{}}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// Config reaches the server, without a limit of rate.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.http.URL, QPS: -1} }

// Counts gives the totals.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted
}

// Fail sets what decides about the fault of each request; nil is none. It is called for one request at a time.
func (s *Server) Fail(decide func(method, path string) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = decide
}

// Objects gives the objects of a resource ("runjournals"), sorted by path. They must not be changed.
func (s *Server) Objects(resource string) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Object
	for _, path := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.Contains(path, "/"+resource+"/") {
			found = append(found, s.objects[path])
		}
	}
	return found
}

// Touch changes an object as somebody else would: its resourceVersion, and nothing that matters.
func (s *Server) Touch(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if strings.HasSuffix(path, "/"+name) {
			s.stamp(o)
		}
	}
}

// Remove deletes an object by its name.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.objects, func(path string, _ Object) bool { return strings.HasSuffix(path, "/"+name) })
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := None
	if s.fault != nil {
		fault = s.fault(r.Method, r.URL.Path)
	}
	switch fault {
	case Dropped:
		panic(http.ErrAbortHandler)
	case Failed:
		s.answer(w, r, http.StatusInternalServerError, status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "etcdserver: leader changed"))
		return
	case Twice:
		s.carryOut(r, body)
	}
	code, answer := s.carryOut(r, body)
	if r.Method != http.MethodGet {
		s.counted.Writes++
		s.counted.Sent += len(body)
	}
	if fault == Lost {
		panic(http.ErrAbortHandler)
	}
	s.answer(w, r, code, answer)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, code int, answer Object) {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") && code < 300 {
		answer = metadataOnly(answer)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	n, _ := w.Write(data)
	s.counted.Received += n
}

func metadataOnly(o Object) Object {
	if items, ok := o["items"].([]any); ok {
		var out []any
		for _, item := range items {
			out = append(out, metadataOnly(item.(Object))) //nolint:forcetypeassert // made here
		}
		return Object{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"], "items": out}
	}
	return Object{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o["metadata"]}
}

func (s *Server) carryOut(r *http.Request, body []byte) (int, Object) {
	path := r.URL.Path
	switch r.Method {
	case http.MethodPost:
		return s.create(path, body)
	case http.MethodPatch:
		return s.patch(path, body)
	case http.MethodDelete:
		if _, there := s.objects[path]; !there {
			return notFound(path)
		}
		delete(s.objects, path)
		return http.StatusOK, Object{"kind": "Status", "apiVersion": "v1", "status": "Success"}
	}
	if o, there := s.objects[path]; there {
		return http.StatusOK, o
	}
	if strings.Count(path, "/") == 7 { // /apis/G/V/namespaces/N/resource/name has seven
		return notFound(path)
	}
	if strings.Count(path, "/") != 6 {
		return notFound(path)
	}
	return s.list(path, r)
}

func (s *Server) create(path string, body []byte) (int, Object) {
	var o Object
	if err := json.Unmarshal(body, &o); err != nil {
		return http.StatusBadRequest, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	meta, _ := o["metadata"].(Object)
	name, _ := meta["name"].(string)
	path += "/" + name
	if name == "" {
		return http.StatusUnprocessableEntity, status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "no name")
	}
	if _, there := s.objects[path]; there {
		return http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonAlreadyExists, name+" already exists")
	}
	s.stamp(o)
	s.objects[path] = o
	return http.StatusCreated, o
}

func (s *Server) patch(path string, body []byte) (int, Object) {
	o, there := s.objects[path]
	if !there {
		return notFound(path)
	}
	var change Object
	if err := json.Unmarshal(body, &change); err != nil {
		return http.StatusBadRequest, status(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
	}
	if meta, ok := change["metadata"].(Object); ok {
		if want, ok := meta["resourceVersion"]; ok && want != o["metadata"].(Object)["resourceVersion"] { //nolint:forcetypeassert // stamped
			return http.StatusConflict, status(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		}
	}
	before, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	merge(o, change)
	if after, err := json.Marshal(o); err == nil && string(after) != string(before) { // no change makes no version
		s.stamp(o)
	}
	return http.StatusOK, o
}

// merge is JSON merge patch (RFC 7396).
func merge(into, change Object) {
	for k, v := range change {
		if v == nil {
			delete(into, k)
			continue
		}
		below, isObject := v.(Object)
		if !isObject {
			into[k] = v
			continue
		}
		old, ok := into[k].(Object)
		if !ok {
			old = Object{}
			into[k] = old
		}
		merge(old, below)
	}
}

func (s *Server) list(path string, r *http.Request) (int, Object) {
	want := map[string]string{}
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		for term := range strings.SplitSeq(selector, ",") {
			k, v, _ := strings.Cut(term, "=")
			want[k] = v
		}
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	after := r.URL.Query().Get("continue")
	meta := Object{"resourceVersion": strconv.Itoa(s.version)}
	items := []any{}
	for _, p := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(p, path+"/") || p <= after || !labelled(s.objects[p], want) {
			continue
		}
		if limit > 0 && len(items) == limit {
			meta["continue"] = s.lastOf(path, items)
			break
		}
		items = append(items, s.objects[p])
	}
	return http.StatusOK, Object{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": items}
}

func (s *Server) lastOf(path string, items []any) string {
	return path + "/" + items[len(items)-1].(Object)["metadata"].(Object)["name"].(string) //nolint:forcetypeassert // made here
}

func labelled(o Object, want map[string]string) bool {
	meta, _ := o["metadata"].(Object)
	labels, _ := meta["labels"].(Object)
	for k, v := range want {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (s *Server) stamp(o Object) {
	s.version++
	meta, ok := o["metadata"].(Object)
	if !ok {
		meta = Object{}
		o["metadata"] = meta
	}
	meta["resourceVersion"] = strconv.Itoa(s.version)
}

func notFound(path string) (int, Object) {
	return http.StatusNotFound, status(http.StatusNotFound, metav1.StatusReasonNotFound, path+" not found")
}

func status(code int, reason metav1.StatusReason, message string) Object {
	return Object{
		"kind": "Status", "apiVersion": "v1", "metadata": Object{}, "status": "Failure", "reason": string(reason),
		"message": fmt.Sprint(message), "code": code,
	}
}
