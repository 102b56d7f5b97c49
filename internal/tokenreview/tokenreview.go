// Package tokenreview asks the API server whose tokens are, and remembers its answers for a short while.
package tokenreview

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// How long an answer about a token counts, and how many are kept. Whoever has a token that is good may be deleted meanwhile;
// one that is not may come from somebody that the API server learns of a moment later.
const (
	GoodFor = time.Minute
	BadFor  = 5 * time.Second
	MaxKept = 10_000
)

// ErrDenied says that a token is not good, or not for who asks.
var ErrDenied = errors.New("the token is not valid here")

// Config says what is asked, and what becomes of the answer.
type Config[T any] struct {
	// Client asks, such as clientset.AuthenticationV1().TokenReviews().
	Client authenticationclient.TokenReviewInterface
	// Audience is whom tokens must be made for; empty is the API server itself.
	Audience string
	// Read makes what is kept of a token that is good. Its error should be [ErrDenied], or is taken as one that may pass.
	Read func(token string, status authenticationv1.TokenReviewStatus) (T, error)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Reviews knows of tokens what Read has made of the API server's answers. Make one with [New].
type Reviews[T any] struct {
	cfg Config[T]

	mu   sync.Mutex
	kept map[[sha256.Size]byte]*review[T]
}

// review is what is known of one token; it is there once done is closed.
type review[T any] struct {
	done  chan struct{}
	value T
	err   error
	until time.Time
}

// New makes reviews that know nothing yet.
func New[T any](cfg Config[T]) *Reviews[T] {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Reviews[T]{cfg: cfg, kept: map[[sha256.Size]byte]*review[T]{}}
}

// Review says what a token is. One that is no good is [ErrDenied]; any other error is that it cannot be said now.
func (t *Reviews[T]) Review(ctx context.Context, token string) (T, error) {
	key := sha256.Sum256([]byte(token)) // no token is kept
	for {
		r, mine := t.lookup(key)
		if mine {
			r.value, r.err = t.ask(ctx, token)
			t.settle(key, r)
			return r.value, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		if r.err == nil || errors.Is(r.err, ErrDenied) {
			return r.value, r.err
		}
		// Another request has asked and got no answer, perhaps because who asked gave up: ask again.
		if ctx.Err() != nil {
			var none T
			return none, ctx.Err()
		}
	}
}

// lookup gives what is known of a token, or makes room for it: then it is the caller's to ask.
func (t *Reviews[T]) lookup(key [sha256.Size]byte) (r *review[T], mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r = t.kept[key]; r != nil && (r.until.IsZero() || t.cfg.Now().Before(r.until)) {
		return r, false
	}
	if len(t.kept) >= MaxKept {
		t.sweep()
	}
	r = &review[T]{done: make(chan struct{})}
	t.kept[key] = r
	return r, true
}

// sweep forgets what has run out, and then anything that is not being asked for.
func (t *Reviews[T]) sweep() {
	for key, r := range t.kept {
		if !r.until.IsZero() && !t.cfg.Now().Before(r.until) {
			delete(t.kept, key)
		}
	}
	for key, r := range t.kept {
		if len(t.kept) < MaxKept {
			return
		}
		if !r.until.IsZero() {
			delete(t.kept, key)
		}
	}
}

// settle keeps an answer for as long as it counts; that none was given is not kept.
func (t *Reviews[T]) settle(key [sha256.Size]byte, r *review[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case r.err == nil:
		r.until = t.cfg.Now().Add(GoodFor)
	case errors.Is(r.err, ErrDenied):
		r.until = t.cfg.Now().Add(BadFor)
	case t.kept[key] == r:
		delete(t.kept, key)
	}
	close(r.done)
}

// ask puts the token to the API server.
func (t *Reviews[T]) ask(ctx context.Context, token string) (T, error) {
	var none T
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if t.cfg.Audience != "" {
		review.Spec.Audiences = []string{t.cfg.Audience}
	}
	answer, err := t.cfg.Client.Create(ctx, review, metav1.CreateOptions{})
	switch {
	case err != nil:
		return none, fmt.Errorf("review a token: %w", err)
	case !answer.Status.Authenticated:
		return none, fmt.Errorf("%w: %s", ErrDenied, answer.Status.Error)
	case t.cfg.Audience != "" && !slices.Contains(answer.Status.Audiences, t.cfg.Audience): // an API server that knows no audiences takes any token
		return none, fmt.Errorf("%w: it is for the audiences %v", ErrDenied, answer.Status.Audiences)
	}
	return t.cfg.Read(token, answer.Status)
}
