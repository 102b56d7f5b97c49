package hook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// Callback lets plugins send an answer before they are asked again.
type Callback struct {
	// URL is where plugins reach us, without the path that is added: "http://127.0.0.1:4746". Empty with a Listener is
	// that listener's address.
	URL string
	// Listener, when set, is served by the dispatcher until it is closed. Otherwise mount [Dispatcher.CallbackHandler].
	Listener net.Listener
	// Secret makes the tokens. With the same secret they are the same after a restart; empty is a random one.
	Secret []byte
}

// CallbackPath is where callbacks arrive, followed by the uid.
const CallbackPath = "/hooks/v1alpha1/reviews/"

// maxRemembered bounds how many settled uids are remembered, to tell them from unknown ones.
const maxRemembered = 1 << 16

type callbacks struct {
	d      *Dispatcher
	base   string
	secret []byte
	server *http.Server
	mux    *http.ServeMux

	mu   sync.Mutex
	done map[string]bool
	old  map[string]bool // the generation before; dropped as a whole
}

func (d *Dispatcher) startCallbacks() error {
	cfg := d.cfg.Callback
	c := &callbacks{d: d, secret: cfg.Secret, base: strings.TrimSuffix(cfg.URL, "/"), mux: http.NewServeMux(), done: map[string]bool{}}
	if c.base == "" && cfg.Listener != nil {
		c.base = "http://" + cfg.Listener.Addr().String()
	}
	if u, err := url.Parse(c.base); err != nil || u.Host == "" {
		return fmt.Errorf("hook callbacks: %q is no URL at which plugins could reach us", cfg.URL)
	}
	if len(c.secret) == 0 {
		c.secret = make([]byte, 32)
		if _, err := rand.Read(c.secret); err != nil {
			return fmt.Errorf("hook callbacks: %w", err)
		}
	}
	c.mux.HandleFunc("POST "+CallbackPath+"{uid}", c.receive)
	d.callbacks = c
	if cfg.Listener != nil {
		c.server = &http.Server{
			Handler:           c,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			MaxHeaderBytes:    16 << 10,
		}
		d.work.Go(func() {
			if err := c.server.Serve(cfg.Listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
				d.cfg.Logger.Error("hook callbacks ended", "error", err)
			}
		})
	}
	return nil
}

func (c *callbacks) close() {
	if c.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		_ = c.server.Close() // somebody holds a connection; it is cut
	}
}

// ServeHTTP makes callbacks a handler.
func (c *callbacks) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.mux.ServeHTTP(w, r) }

// offer gives the callback for a review.
func (c *callbacks) offer(uid string) *v1alpha1.Callback {
	return &v1alpha1.Callback{URL: c.base + CallbackPath + url.PathEscape(uid), Token: c.token(uid)}
}

// token is derived, so that nothing needs to be kept for it.
func (c *callbacks) token(uid string) string {
	h := hmac.New(sha256.New, c.secret)
	_, _ = io.WriteString(h, "sluice callback "+uid)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func (c *callbacks) opened(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.done, uid)
	delete(c.old, uid)
}

func (c *callbacks) settled(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.done) >= maxRemembered {
		c.old, c.done = c.done, map[string]bool{}
	}
	c.done[uid] = true
}

func (c *callbacks) isSettled(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done[uid] || c.old[uid]
}

// receive takes one callback: 200 when the answer was taken, 400 when it is wrong (the token still works), 401 without
// and 403 with a wrong token, 404 for a uid that is not known here, 409 for one that is settled.
func (c *callbacks) receive(w http.ResponseWriter, r *http.Request) {
	uid := r.PathValue("uid")
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok || token == "":
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the header \"Authorization: Bearer <token>\" is missing; the token is the request's callback.token", http.StatusUnauthorized)
		return
	case !hmac.Equal([]byte(token), []byte(c.token(uid))):
		http.Error(w, "the token is not that of this uid", http.StatusForbidden)
		return
	case c.isSettled(uid):
		http.Error(w, "this review is settled already", http.StatusConflict)
		return
	}
	c.d.mu.Lock()
	review := c.d.reviews[uid]
	c.d.mu.Unlock()
	if review == nil {
		http.Error(w, "no review of this uid is waiting; if it is still open it will be put again", http.StatusNotFound)
		return
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, v1alpha1.MaxAnswerBytes))
	if err != nil {
		http.Error(w, "the answer cannot be read, or is larger than 1 MiB", http.StatusBadRequest)
		return
	}
	response, err := v1alpha1.DecodeResponse(data, v1alpha1.Point(review.cmd.Point), uid)
	if err == nil && response.Decision == "" {
		err = errors.New("response.decision: is missing; a callback ends the wait")
	}
	if err != nil {
		http.Error(w, "bad answer: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !review.lane.deliver(review, response) {
		http.Error(w, "this review is settled already", http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusOK)
}
