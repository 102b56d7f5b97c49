package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

// metrics counts what goes on, under Argo's names where it has them.
type metrics struct {
	workflows *prometheus.GaugeVec
	total     *prometheus.CounterVec
	tasks     *prometheus.CounterVec
	writes    *prometheus.CounterVec
	cron      *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		workflows: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "argo_workflows_gauge", Help: "Workflows that go on now, by phase.",
		}, []string{"phase"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "argo_workflows_total_count", Help: "Workflows that entered a phase.",
		}, []string{"phase", "namespace"}),
		tasks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_tasks_total", Help: "Attempts at tasks that ended, by phase; reused ones apart.",
		}, []string{"phase", "reused"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_status_writes_total", Help: "Writes of the status of workflows, by what came of them.",
		}, []string{"result"}),
		cron: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "argo_workflows_cronworkflows_triggered_total", Help: "Workflows that CronWorkflows started.",
		}, []string{"namespace"}),
	}
}

// Collectors are what a registry of metrics takes.
func (c *Controller) Collectors() []prometheus.Collector {
	m := c.metrics
	return []prometheus.Collector{m.workflows, m.total, m.tasks, m.writes, m.cron}
}

// wrote counts a write of a status.
func (m *metrics) wrote(err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.writes.WithLabelValues(result).Inc()
}

// counted is what the metrics know of one run.
type counted struct {
	phase engine.Phase
	ended map[engine.NodeID]bool
}

// observe counts what changed in a run.
func (m *metrics) observe(r *run, v runner.View) {
	c := &r.counted
	if c.ended == nil {
		c.ended = map[engine.NodeID]bool{}
		if v.State.Len() > 1 { // it goes on after a restart: what was counted stays counted
			for n := range v.State.Nodes() {
				c.ended[n.ID] = n.Phase.Ended()
			}
			c.phase = v.State.Phase
			m.workflows.WithLabelValues(string(c.phase)).Inc()
		}
	}
	for _, id := range v.Changed {
		n := v.State.Node(id)
		if n == nil || n.Kind != engine.Leaf || n.Dropped {
			continue
		}
		if ended := n.Phase.Ended(); ended != c.ended[id] {
			c.ended[id] = ended
			if ended {
				reused := "false"
				if n.Reused {
					reused = "true"
				}
				m.tasks.WithLabelValues(string(n.Phase), reused).Inc()
			}
		}
	}
	if p := v.State.Phase; p != c.phase {
		m.leave(c)
		c.phase = p
		m.total.WithLabelValues(string(p), v.State.Run.Namespace).Inc()
		if !p.Ended() {
			m.workflows.WithLabelValues(string(p)).Inc()
		}
	}
}

// leave takes a run out of those that go on.
func (m *metrics) leave(c *counted) {
	if c.phase != "" && !c.phase.Ended() {
		m.workflows.WithLabelValues(string(c.phase)).Dec()
	}
	c.phase = ""
}
