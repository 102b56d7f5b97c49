package kube_test

import (
	"fmt"
	"testing"

	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/kube"
	"github.com/sluice-ml/sluice/internal/store/kube/kubetest"
)

// BenchmarkAppend is what an event costs after 1,000 and after 100,000 others: one at a time, and in batches of 64.
func BenchmarkAppend(b *testing.B) {
	for _, there := range []int{1000, 100_000} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("after %d/batches of %d", there, batch), func(b *testing.B) {
				server := kubetest.New(b)
				s := open(b, server.Config())
				if err := s.Create(b.Context(), owner, theRun()); err != nil {
					b.Fatal(err)
				}
				bench(b, s, theRun(), there, batch, server.Counts)
			})
		}
	}
}

// BenchmarkAppendOnCluster is the same on a real API server (KUBECONFIG), and with single events what fills a chunk.
func BenchmarkAppendOnCluster(b *testing.B) {
	for _, there := range []int{1000, 100_000} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("after %d/batches of %d", there, batch), func(b *testing.B) {
				config, namespace, owner := cluster(b)
				s := open(b, config)
				run := theRun()
				run.Namespace = namespace
				if err := s.Create(b.Context(), owner, run); err != nil {
					b.Fatal(err)
				}
				bench(b, s, run, there, batch, nil)
			})
		}
	}
}

func bench(b *testing.B, s *kube.Store, run store.Run, there, batch int, counts func() kubetest.Counts) {
	b.Helper()
	n := 0
	for n < there {
		if err := s.Append(b.Context(), run.UID, n, events(n, n+500)); err != nil {
			b.Fatal(err)
		}
		n += 500
	}
	var before kubetest.Counts
	if counts != nil {
		before = counts()
	}
	begun := n
	for b.Loop() {
		if err := s.Append(b.Context(), run.UID, n, events(n, n+batch)); err != nil {
			b.Fatal(err)
		}
		n += batch
	}
	done := float64(n - begun)
	b.ReportMetric(b.Elapsed().Seconds()*1e6/done, "us/event")
	if counts != nil {
		after := counts()
		b.ReportMetric(float64(after.Sent-before.Sent)/done, "sent-B/event")
		b.ReportMetric(float64(after.Received-before.Received)/done, "received-B/event")
	}
}
