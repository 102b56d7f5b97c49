package status

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/argo"
)

// apply is RFC 7396: what an API server does with a merge patch.
func apply(to, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	m, ok := to.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for k, v := range p {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = apply(m[k], v)
	}
	return m
}

func reread(t interface{ Fatal(...any) }, v any) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// workflowOf makes a projection of n nodes, of which each has a text.
func workflowOf(phase string, nodes map[string]string) *argo.Workflow {
	w := &argo.Workflow{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelPhase: phase}}, Status: &argo.WorkflowStatus{
		Phase: phase, StartedAt: metav1.NewTime(time.Unix(0, 0).UTC()), Nodes: map[string]argo.NodeStatus{},
	}}
	for id, message := range nodes {
		w.Status.Nodes[id] = argo.NodeStatus{ID: id, Name: id, Type: "Pod", Phase: phase, Message: message}
	}
	return w
}

func contentOf(t interface{ Fatal(...any) }, w *argo.Workflow) Content {
	c, err := Of(w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Whatever is shown one after the other, the object has what is shown last: plain, compressed and omitted, and back.
func TestPatchesLeadToWhatIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{}
		page := NewPage(Content{}, false, 100, 3000)
		for range rapid.IntRange(1, 6).Draw(t, "writes") {
			nodes := map[string]string{}
			for i := range rapid.IntRange(0, 60).Draw(t, "nodes") {
				nodes[fmt.Sprintf("n%d", i)] = rapid.StringMatching(`[a-z]{0,40}`).Draw(t, "message")
			}
			w := workflowOf(rapid.SampledFrom([]string{"Running", "Succeeded"}).Draw(t, "phase"), nodes)
			want := reread(t, w.Status)
			c := contentOf(t, w)
			patch, written, err := page.Next(c)
			if err != nil {
				t.Fatal(err)
			}
			written()
			if patch != nil {
				object, _ = apply(object, reread(t, patch)).(map[string]any)
			}
			there, _ := object["status"].(map[string]any)
			got, err := Read(there, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if conditions, _ := there["conditions"].([]any); len(conditions) > 0 { // the nodes do not fit
				if len(got.Nodes) > 0 {
					t.Fatalf("it says that nodes are omitted, and has %d", len(got.Nodes))
				}
				continue
			}
			if len(got.Nodes) != len(nodes) {
				t.Fatalf("%d nodes, want %d", len(got.Nodes), len(nodes))
			}
			wanted, _ := want["nodes"].(map[string]any)
			for id, data := range got.Nodes {
				n, err := object2(data)
				if err != nil {
					t.Fatal(err)
				}
				expected, _ := wanted[id].(map[string]any)
				dropNulls(expected)
				if d := cmp.Diff(expected, n); d != "" {
					t.Fatalf("node %s: %s", id, d)
				}
			}
			if there["phase"] != w.Status.Phase {
				t.Fatalf("phase %v, want %s", there["phase"], w.Status.Phase)
			}
		}
	})
}

func object2(data []byte) (map[string]any, error) {
	var m map[string]any
	err := json.Unmarshal(data, &m)
	dropNulls(m)
	return m, err
}

// A write has the nodes that changed, and of those what changed.
func TestOnlyWhatChanged(t *testing.T) {
	nodes := map[string]string{}
	for i := range 1000 {
		nodes[fmt.Sprintf("n%d", i)] = strings.Repeat("x", 100)
	}
	page := NewPage(Content{}, false, 0, 0)
	_, written, err := page.Next(contentOf(t, workflowOf("Running", nodes)))
	if err != nil {
		t.Fatal(err)
	}
	written()
	nodes["n7"] = "other"
	patch, _, err := page.Next(contentOf(t, workflowOf("Running", nodes)))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"status": map[string]any{"nodes": map[string]any{"n7": map[string]any{"message": "other"}}}}
	if d := cmp.Diff(want, reread(t, patch)); d != "" {
		t.Error(d)
	}
}

// What a person put into a task that waits stays there, whatever is written beside it.
func TestWaitingNodesAreKept(t *testing.T) {
	waits := json.RawMessage(`{"id":"s","name":"s","type":"Suspend","phase":"Running","outputs":{"parameters":[{"name":"x","value":"mine"}]}}`)
	there := Content{Nodes: map[string]json.RawMessage{"s": waits}, Rest: map[string]any{}}
	for name, limit := range map[string]int{"plain": 0, "compressed": 10} {
		page := NewPage(there, false, 0, limit)
		ours := Content{
			Nodes: map[string]json.RawMessage{
				"s": json.RawMessage(`{"id":"s","name":"s","type":"Suspend","phase":"Running","outputs":{"parameters":[{"name":"x","valueFrom":{"supplied":{}}}]}}`),
				"t": json.RawMessage(`{"id":"t","name":"t","type":"Pod","phase":"Running"}`),
			},
			Rest: map[string]any{}, Size: 300,
		}
		if _, _, err := page.Next(ours); err != nil {
			t.Fatal(err)
		}
		if got := string(ours.Nodes["s"]); got != string(waits) {
			t.Errorf("%s: the waiting task became %s", name, got)
		}
	}
}

// Argo's tools read compressedNodes: base64 of gzip of the nodes as JSON.
func TestPack(t *testing.T) {
	packed, err := Pack([]byte(`{"a":{"id":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(packed, "H4sI") { // gzip's beginning in base64
		t.Errorf("packed: %s", packed)
	}
	got, err := Unpack(packed)
	if err != nil || string(got) != `{"a":{"id":"a"}}` {
		t.Errorf("unpacked: %s %v", got, err)
	}
	for _, bad := range []string{"%", "aGVsbG8=", packed[:len(packed)/2]} {
		if _, err := Unpack(bad); err == nil {
			t.Errorf("%q is unpacked", bad)
		}
	}
}

func TestRate(t *testing.T) {
	now := time.Unix(1000, 0)
	var r Rate
	if !r.Due(1).IsZero() {
		t.Error("the first write waits")
	}
	r.Written(now, time.Millisecond, 100, false)
	if got := r.Due(100).Sub(now); got != Pause {
		t.Errorf("a small one waits %s", got)
	}
	r.Written(now, 200*time.Millisecond, 100, false)
	if got := r.Due(100).Sub(now); got != 10*time.Second {
		t.Errorf("one that costs 200 ms waits %s", got)
	}
	r.Written(now, time.Millisecond, 1000, true)
	r.Changed(10)
	if got := r.Due(1000).Sub(now); got != slow {
		t.Errorf("a compressed one of which little changed waits %s", got)
	}
	if got := r.Due(2000).Sub(now); got != Pause {
		t.Errorf("a compressed one that has doubled waits %s", got)
	}
	r.Changed(240)
	if got := r.Due(1000).Sub(now); got != Pause {
		t.Errorf("a compressed one of which a quarter changed waits %s", got)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			nodes := map[string]string{}
			for i := range n {
				nodes[fmt.Sprintf("n%d", i)] = "waiting"
			}
			page := NewPage(Content{}, false, 0, 1<<30)
			var bytes int
			i := 0
			for b.Loop() {
				nodes[fmt.Sprintf("n%d", i%n)] = fmt.Sprint(i)
				i++
				patch, written, err := page.Next(contentOf(b, workflowOf("Running", nodes)))
				if err != nil {
					b.Fatal(err)
				}
				written()
				data, _ := json.Marshal(patch)
				bytes += len(data)
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/write")
		})
	}
}
