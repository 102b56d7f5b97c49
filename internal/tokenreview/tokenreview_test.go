package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

// reviews are over a fake API server that answers as status says. What is kept of a token is its user's name.
func reviews(status func(token string) (authenticationv1.TokenReviewStatus, error), now func() time.Time) (t *Reviews[string], asked *[]string) {
	clients := fake.NewClientset()
	var mu sync.Mutex
	asked = &[]string{}
	clients.PrependReactor("create", "tokenreviews", func(action ktesting.Action) (bool, runtime.Object, error) {
		review := action.(ktesting.CreateAction).GetObject().(*authenticationv1.TokenReview)
		mu.Lock()
		*asked = append(*asked, review.Spec.Token)
		mu.Unlock()
		said, err := status(review.Spec.Token)
		return true, &authenticationv1.TokenReview{Status: said}, err
	})
	return New(Config[string]{
		Client: clients.AuthenticationV1().TokenReviews(), Now: now,
		Read: func(_ string, s authenticationv1.TokenReviewStatus) (string, error) { return s.User.Username, nil },
	}), asked
}

func good() authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "jane"}}
}

func TestTokenReviewsAreRemembered(t *testing.T) {
	down := errors.New("connection refused")
	now := time.Unix(1000, 0)
	r, asked := reviews(func(token string) (authenticationv1.TokenReviewStatus, error) {
		switch token {
		case "bad":
			return authenticationv1.TokenReviewStatus{}, nil
		case "down":
			return authenticationv1.TokenReviewStatus{}, down
		}
		return good(), nil
	}, func() time.Time { return now })
	ask := func(token string, want int) {
		t.Helper()
		before := len(*asked)
		_, err := r.Review(t.Context(), token)
		if (token == "good") != (err == nil) || (token == "bad") != errors.Is(err, ErrDenied) || (token == "down") != errors.Is(err, down) {
			t.Errorf("%s: %v", token, err)
		}
		if got := len(*asked) - before; got != want {
			t.Errorf("%s: asked %d times, want %d", token, got, want)
		}
	}
	for _, token := range []string{"good", "bad"} {
		ask(token, 1)
		ask(token, 0)
	}
	ask("down", 1)
	ask("down", 1)
	now = now.Add(BadFor)
	ask("good", 0)
	ask("bad", 1)
	now = now.Add(GoodFor)
	ask("good", 1)
}

func TestTokenReviewIsAskedForOnceByMany(t *testing.T) {
	open := make(chan struct{})
	r, asked := reviews(func(string) (authenticationv1.TokenReviewStatus, error) {
		<-open
		return good(), nil
	}, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if name, err := r.Review(context.Background(), "token"); err != nil || name != "jane" {
				t.Errorf("%s, %v", name, err)
			}
		})
	}
	close(open)
	all.Wait()
	if len(*asked) != 1 {
		t.Errorf("asked %d times", len(*asked))
	}
}

func TestRememberedTokensAreBounded(t *testing.T) {
	r, _ := reviews(func(string) (authenticationv1.TokenReviewStatus, error) {
		return authenticationv1.TokenReviewStatus{}, nil
	}, nil)
	for i := range MaxKept + 100 {
		if _, err := r.Review(t.Context(), fmt.Sprint(i)); !errors.Is(err, ErrDenied) {
			t.Fatal(err)
		}
	}
	if len(r.kept) > MaxKept {
		t.Errorf("%d are kept", len(r.kept))
	}
}
