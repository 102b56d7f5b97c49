package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// pendingPlugin says pending to everything and hands out the callbacks that it was offered.
func pendingPlugin(t *testing.T) (url string, offered chan v1alpha1.TaskReviewRequest) {
	offered = make(chan v1alpha1.TaskReviewRequest, 100)
	server := answering(t, func(r *v1alpha1.TaskReviewRequest) *v1alpha1.TaskReviewResponse {
		offered <- *r
		return &v1alpha1.TaskReviewResponse{Pending: &v1alpha1.Pending{RetryAfterSeconds: 3600}}
	})
	return server.URL, offered
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// call posts to a callback, and gives the status and the text.
func call(t *testing.T, url, token, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func answerText(uid string, decision v1alpha1.Decision) string {
	var out bytes.Buffer
	writeReview(&out, &v1alpha1.TaskReviewResponse{UID: uid, Decision: decision})
	return out.String()
}

func TestCallbackEndsTheWait(t *testing.T) {
	url, offered := pendingPlugin(t)
	d, sink := dispatcher(t, Config{Callback: &Callback{Listener: listen(t)}}, load(t, httpHook(url)))
	d.Ask(context.Background(), testRun, testProgram, ask("u/1 ?"))
	d.Ask(context.Background(), testRun, testProgram, ask("other"))
	callbacks := map[string]*v1alpha1.Callback{}
	for range 2 {
		r := <-offered
		callbacks[r.UID] = r.Callback
	}
	c := callbacks["u/1 ?"]
	good := answerText("u/1 ?", v1alpha1.Run)
	for _, try := range []struct {
		name, token, body string
		status            int
		text              string
	}{
		{"no token", "", good, http.StatusUnauthorized, "Authorization"},
		{"a made-up token", "abc", good, http.StatusForbidden, "not that of this uid"},
		{"another's token", callbacks["other"].Token, good, http.StatusForbidden, "not that of this uid"},
		{"garbage", c.Token, "garbage", http.StatusBadRequest, "is not JSON"},
		{"another's answer", c.Token, answerText("other", v1alpha1.Run), http.StatusBadRequest, "response.uid"},
		{"pending", c.Token, strings.Replace(good, `"decision":"Run"`, `"pending":{"retryAfterSeconds":1}`, 1), http.StatusBadRequest, "ends the wait"},
		{"too much", c.Token, strings.Repeat(" ", 2<<20), http.StatusBadRequest, "1 MiB"},
		{"the answer", c.Token, good, http.StatusOK, ""},
		{"the answer again", c.Token, good, http.StatusConflict, "settled"},
	} {
		status, text := call(t, c.URL, try.token, try.body)
		if status != try.status || !strings.Contains(text, try.text) {
			t.Errorf("%s: %d %q, want %d and %q", try.name, status, text, try.status, try.text)
		}
	}
	if a := sink.next(t); a.Failure != "" || a.Answer.Decision != "Run" {
		t.Errorf("told %+v", a)
	}
	if len(sink.answers) != 0 {
		t.Error("told more than one answer")
	}
	// A review that was cancelled is settled, too.
	d.Cancel(testRun, cancelOf("other"))
	if status, _ := call(t, callbacks["other"].URL, callbacks["other"].Token, answerText("other", v1alpha1.Run)); status != http.StatusConflict {
		t.Errorf("a cancelled review: %d, want 409", status)
	}
}

// With the same secret a token is good after a restart, once the engine has asked again.
func TestCallbackAfterARestart(t *testing.T) {
	url, offered := pendingPlugin(t)
	secret := []byte("kept beside the database")
	cmd := ask("u1")
	first, _ := dispatcher(t, Config{Callback: &Callback{Listener: listen(t), Secret: secret}}, load(t, httpHook(url)))
	first.Ask(context.Background(), testRun, testProgram, cmd)
	before := (<-offered).Callback
	if err := first.Close(context.Background()); err != nil {
		t.Fatal(err)
	}

	listener := listen(t)
	second, sink := dispatcher(t, Config{Callback: &Callback{Listener: listener, Secret: secret}}, load(t, httpHook(url)))
	again := "http://" + listener.Addr().String() + strings.TrimPrefix(before.URL[len("http://"):], strings.Split(before.URL, "/")[2])
	if status, text := call(t, again, before.Token, answerText("u1", v1alpha1.Skip)); status != http.StatusNotFound || !strings.Contains(text, "put again") {
		t.Errorf("before the engine asked: %d %q", status, text)
	}
	second.Ask(context.Background(), testRun, testProgram, cmd)
	if after := (<-offered).Callback; after.Token != before.Token {
		t.Error("the token has changed")
	}
	if status, text := call(t, again, before.Token, answerText("u1", v1alpha1.Skip)); status != http.StatusOK {
		t.Errorf("after it: %d %s", status, text)
	}
	if a := sink.next(t); a.Answer.Decision != "Skip" {
		t.Errorf("told %+v", a)
	}
}

func TestNoCallbackWithoutConfiguration(t *testing.T) {
	url, offered := pendingPlugin(t)
	d, _ := dispatcher(t, Config{}, load(t, httpHook(url)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	r := <-offered
	if r.Callback != nil || d.CallbackHandler() != nil {
		data, _ := json.Marshal(r.Callback)
		t.Errorf("a callback was offered: %s", data)
	}
}
