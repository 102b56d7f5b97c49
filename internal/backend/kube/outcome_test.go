package kube

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func report(t testing.TB, r spec.Result) string {
	t.Helper()
	data, err := json.Marshal(spec.Report{Result: &r})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// exited is a container that was started and has ended.
func exited(name string, code int32, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, Message: message, StartedAt: metav1.NewTime(noon), FinishedAt: metav1.NewTime(noon.Add(time.Second)),
	}}}
}

// unstarted is a container of which Kubernetes says that it ended although it never was.
func unstarted(name string, code int32, reason, message string) corev1.ContainerStatus {
	c := exited(name, code, reason, message)
	c.State.Terminated.StartedAt, c.State.Terminated.FinishedAt = metav1.Time{}, metav1.Time{}
	return c
}

func running(name string, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(noon)}}}
}

func held(name, reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func status(phase corev1.PodPhase, containers ...corev1.ContainerStatus) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: containers}
}

func disrupted(s corev1.PodStatus, reason, message string) corev1.PodStatus {
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	return s
}

func withReason(s corev1.PodStatus, reason, message string) corev1.PodStatus {
	s.Reason, s.Message = reason, message
	return s
}

func withInit(s corev1.PodStatus, c ...corev1.ContainerStatus) corev1.PodStatus {
	s.InitContainerStatuses = c
	return s
}

func TestOutcomeOfEndedPods(t *testing.T) {
	zero, one, three, killed := 0, 1, 3, 137
	done := report(t, spec.Result{Phase: spec.Succeeded, ExitCode: &zero, Ran: true})
	failed := report(t, spec.Result{Phase: spec.Failed, ExitCode: &three, Ran: true, Message: "main: Error (exit code 3)"})
	stopped := report(t, spec.Result{Phase: spec.Failed, Ran: true, Stopped: true, Message: "the task was stopped"})
	early := report(t, spec.Result{Phase: spec.Failed, Stopped: true, Message: "the task was stopped"})
	const phaseFailed, phaseError, fine = engine.FailedPhase, engine.ErrorPhase, engine.SucceededPhase
	for name, test := range map[string]struct {
		status  corev1.PodStatus
		deleted *time.Time // its time
		nowhere bool       // not on a node
		gone    bool
		stop    string
		several []string

		phase     engine.Phase
		code      *int
		message   string
		transient bool
		lost      bool
	}{
		"success":                                 {status: status("Succeeded", exited("main", 0, "Completed", done)), phase: fine, code: &zero},
		"a failed command":                        {status: status("Failed", exited("main", 3, "Error", failed)), phase: phaseFailed, code: &three, message: "main: Error (exit code 3)"},
		"main has ended, a sidecar not":           {status: status("Running", exited("main", 0, "Completed", done), running("sidecar", true)), phase: fine, code: &zero},
		"a sidecar was killed":                    {status: status("Failed", exited("main", 0, "Completed", done), exited("sidecar", 137, "Error", "")), phase: fine, code: &zero},
		"a sidecar failed by itself":              {status: status("Failed", exited("main", 0, "Completed", done), exited("sidecar", 1, "Error", "")), phase: fine, code: &zero},
		"a malformed result":                      {status: status("Failed", exited("main", 0, "Completed", "{")), phase: phaseError, message: "main: its result cannot be read: unexpected EOF"},
		"a result with something behind":          {status: status("Failed", exited("main", 0, "Completed", done+"x")), phase: phaseError, message: "main: its result cannot be read: something follows"},
		"an empty report":                         {status: status("Succeeded", exited("main", 0, "Completed", "{}")), phase: phaseError, message: "main: its result says nothing"},
		"no result":                               {status: status("Succeeded", exited("main", 0, "Completed", "")), phase: phaseError, code: &zero, message: "main: it ended without a result"},
		"a killed executor":                       {status: status("Failed", exited("main", 137, "Error", "")), phase: phaseFailed, code: &killed, message: "main: Error (exit code 137)"},
		"out of memory, executor and all":         {status: status("Failed", exited("main", 137, "OOMKilled", "")), phase: phaseFailed, code: &killed, message: "main: OOMKilled (exit code 137): it used more memory than its limit"},
		"out of memory, the executor lives":       {status: status("Failed", exited("main", 137, "OOMKilled", report(t, spec.Result{Phase: spec.Failed, ExitCode: &killed, Ran: true, Message: "main: Error (exit code 137)"}))), phase: phaseFailed, code: &killed, message: "main: OOMKilled (exit code 137)"},
		"a command that survived another's OOM":   {status: status("Succeeded", exited("main", 0, "OOMKilled", done)), phase: fine, code: &zero},
		"the runtime could not start main":        {status: status("Failed", exited("main", 128, "StartError", "exec /sluice/bin/sluice-executor: exec format error")), phase: phaseError, message: "main: StartError (exit code 128): exec /sluice"},
		"the kubelet knows nothing of main":       {status: status("Failed", unstarted("main", 137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated")), phase: phaseError, message: "main: ContainerStatusUnknown (exit code 137): The container could"},
		"the executor could not be installed":     {status: withInit(status("Failed", held("main", "PodInitializing", "")), exited("sluice-init", 1, "Error", "no space left")), phase: phaseError, message: "sluice-init: Error (exit code 1): no space left", transient: true},
		"the author's init container failed":      {status: withInit(status("Failed", held("main", "PodInitializing", "")), exited("sluice-init", 0, "Completed", ""), exited("prepare", 2, "Error", "")), phase: phaseFailed, message: "prepare: Error (exit code 2)"},
		"virtual kubelet: main still waits":       {status: status("Failed", held("main", "ContainerCreating", "")), phase: phaseError, message: "Pod failed before main container starts due to ContainerCreating", transient: true},
		"a failed pod that says nothing":          {status: status("Failed"), phase: phaseError, message: "pod p failed without saying why", transient: true},
		"evicted before its start":                {status: withReason(status("Failed"), "Evicted", "The node was low on resource: memory."), phase: phaseError, message: "Evicted: The node was low", transient: true, lost: true},
		"evicted while it ran":                    {status: withReason(status("Failed", exited("main", 137, "Error", "")), "Evicted", "The node was low on resource: memory."), phase: phaseFailed, code: &killed, message: "Evicted: The node was low"},
		"evicted gently while it ran":             {status: withReason(status("Failed", exited("main", 143, "Error", stopped)), "Evicted", "The node was low on resource: memory."), phase: phaseFailed, message: "Evicted: The node was low"},
		"evicted gently before the command began": {status: withReason(status("Failed", exited("main", 143, "Error", early)), "Evicted", "The node was low on resource: memory."), phase: phaseError, message: "Evicted: The node was low", transient: true, lost: true},
		"evicted after success":                   {status: withReason(status("Failed", exited("main", 0, "Completed", done)), "Evicted", "The node was low on resource: memory."), phase: fine, code: &zero},
		"refused by the kubelet":                  {status: withReason(status("Failed"), "OutOfcpu", "Node didn't have enough resource: cpu"), phase: phaseError, message: "OutOfcpu: Node didn't", transient: true, lost: true},
		"the pod's own deadline":                  {status: withReason(status("Failed", exited("main", 143, "Error", stopped)), "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), phase: phaseFailed, message: "DeadlineExceeded: Pod was active"},
		"the pod's own deadline before its start": {status: withReason(status("Failed"), "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), phase: phaseFailed, message: "DeadlineExceeded"},
		"preempted before its start":              {status: disrupted(status("Failed"), "PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod"), phase: phaseError, message: "the pod was preempted to make room", transient: true, lost: true},
		"preempted while it ran":                  {status: disrupted(status("Failed", exited("main", 143, "Error", stopped)), "PreemptionByScheduler", ""), phase: phaseError, message: "the pod was preempted to make room"},
		"the node is lost":                        {status: disrupted(status("Failed", running("main", true)), "DeletionByPodGC", "PodGC: node no longer exists"), phase: phaseError, message: "the pod's node is lost (DeletionByPodGC: PodGC: node no longer exists)"},
		"deleted by someone while it ran":         {status: status("Failed", exited("main", 143, "Error", stopped)), deleted: &noon, phase: phaseError, message: "the pod was deleted"},
		"deleted by someone before it ran":        {status: status("Failed", exited("main", 143, "Error", early)), deleted: &noon, phase: phaseError, message: "the pod was deleted", transient: true},
		"deleted before it had a node":            {status: status("Pending"), deleted: &noon, nowhere: true, phase: phaseError, message: "the pod was deleted", transient: true},
		"gone without a word":                     {status: status("Running", running("main", true)), gone: true, phase: phaseError, message: "the pod was deleted"},
		"gone before it ran":                      {status: status("Pending"), gone: true, phase: phaseError, message: "the pod was deleted", transient: true},
		"gone with its result":                    {status: status("Running", exited("main", 0, "Completed", done)), gone: true, phase: fine, code: &zero},
		"its node does not answer":                {status: status("Running", running("main", true)), deleted: ptr(noon.Add(-3 * time.Minute)), phase: phaseError, message: "the pod's node n does not answer"},
		"stopped":                                 {status: status("Failed", exited("main", 143, "Error", stopped)), deleted: &noon, stop: "enough", phase: phaseFailed, message: "enough"},
		"stopped before it had a node":            {status: status("Pending"), deleted: &noon, nowhere: true, stop: "enough", phase: phaseFailed, message: "enough"},
		"killed":                                  {status: status("Failed", exited("main", 137, "Error", "")), deleted: &noon, stop: "enough", phase: phaseFailed, code: &killed, message: "enough"},
		"succeeded although it was stopped":       {status: status("Succeeded", exited("main", 0, "Completed", done)), deleted: &noon, stop: "enough", phase: fine, code: &zero},
		"failed by itself before it was stopped":  {status: status("Failed", exited("main", 3, "Error", failed)), deleted: &noon, stop: "enough", phase: phaseFailed, code: &three, message: "main: Error (exit code 3)"},
		"an image's name is no name":              {status: status("Pending", held("main", "InvalidImageName", "Failed to apply default image tag")), phase: phaseError, message: "main: InvalidImageName: Failed to apply"},
		"an image must be there and is not":       {status: withInit(status("Pending", held("main", "PodInitializing", "")), held("sluice-init", "ErrImageNeverPull", "Container image is not present")), phase: phaseError, message: "sluice-init: ErrImageNeverPull"},
		"another container of a set failed":       {several: []string{"a", "main"}, status: status("Failed", exited("a", 1, "Error", ""), exited("main", 0, "Completed", done)), phase: phaseFailed, code: &zero, message: "a: Error (exit code 1)"},
		"something broke around another container": {several: []string{"a", "main"}, status: status("Failed", exited("a", 65, "Error", ""), exited("main", 0, "Completed", done)), phase: phaseError, code: &zero,
			message: "a: Error (exit code 65)"},
		"a set's main waited in vain": {several: []string{"a", "main"}, status: status("Failed", exited("a", 1, "Error", ""), exited("main", 143, "Error", report(t, spec.Result{Phase: spec.Failed, ExitCode: &one, Message: "main: it needs container a"}))), phase: phaseFailed, code: &one, message: "a: Error (exit code 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: test.status}
			if test.deleted != nil {
				p.DeletionTimestamp = ptr(metav1.NewTime(*test.deleted))
			}
			if test.nowhere {
				p.Spec.NodeName = ""
			}
			cmd := &engine.StartTask{Body: program.Body{Containers: []program.Container{{Name: "main"}}}}
			if test.several != nil {
				cmd.Body.Containers = nil
				for _, n := range test.several {
					cmd.Body.Containers = append(cmd.Body.Containers, program.Container{Name: n})
				}
			}
			l := look{pod: p, cmd: cmd, now: noon, gone: test.gone}
			if test.stop != "" {
				l.opts = result.Options{Stopped: &engine.StopTask{Message: test.stop}}
			}
			got := l.outcome().End
			if got == nil {
				t.Fatal("it has not ended")
			}
			r := got.Result
			if r.Phase != test.phase || r.Transient != test.transient || got.Lost != test.lost || !strings.HasPrefix(r.Message, test.message) || (test.message == "") != (r.Message == "") {
				t.Errorf("phase %s, transient %v, lost %v, message %q; want %s, %v, %v, %q", r.Phase, r.Transient, got.Lost, r.Message, test.phase, test.transient, test.lost, test.message)
			}
			if test.code != nil || r.Phase == fine {
				if diff := cmp.Diff(test.code, r.ExitCode); diff != "" {
					t.Errorf("exit code: %s", diff)
				}
			}
			if len(test.several) != len(r.Containers) {
				t.Errorf("containers %+v", r.Containers)
			}
			if !test.nowhere && r.Host != "n" {
				t.Errorf("host %q", r.Host)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestOutcomeOfPodsOnTheirWay(t *testing.T) {
	for name, test := range map[string]struct {
		status corev1.PodStatus
		want   standing
	}{
		"nothing yet":               {status("Pending"), standing{}},
		"being made":                {withInit(status("Pending", held("main", "PodInitializing", "")), held("sluice-init", "ContainerCreating", "")), standing{}},
		"the executor is installed": {withInit(status("Pending", held("main", "PodInitializing", "")), running("sluice-init", true)), standing{}},
		"running":                   {status("Running", running("main", true)), standing{Running: true, Ready: true}},
		"not ready":                 {status("Running", running("main", false)), standing{Running: true}},
		"its sidecar is not ready":  {status("Running", running("main", true), running("s", false)), standing{Running: true}},
		"one of two has ended":      {status("Running", running("main", true), exited("a", 0, "Completed", "")), standing{Running: true}},
		"an image that is not to be had": {
			status("Pending", held("main", "ErrImagePull", "not found")), standing{Kind: "ErrImagePull", Note: "ErrImagePull: not found"},
		},
		"an image that is tried again": {
			status("Pending", held("main", "ImagePullBackOff", "Back-off")), standing{Kind: "ErrImagePull", Note: "ImagePullBackOff: Back-off"},
		},
		"a secret that is not there": {
			status("Pending", held("main", "CreateContainerConfigError", `secret "s" not found`)), standing{Kind: "CreateContainerConfigError", Note: `CreateContainerConfigError: secret "s" not found`},
		},
		"no place": {
			corev1.PodStatus{Phase: "Pending", Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}},
			standing{Kind: "Unschedulable", Note: "Unschedulable: 0/1 nodes are available"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: test.status}
			cmd := &engine.StartTask{Body: program.Body{Containers: []program.Container{{Name: "main"}, {Name: "a"}}}}
			if strings.Contains(name, "ready") || name == "running" {
				cmd.Body.Containers = cmd.Body.Containers[:1]
			}
			if diff := cmp.Diff(test.want, look{pod: p, cmd: cmd, now: noon}.outcome()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A result that lies with the endpoint is named by its digest, and means the same as one in the message.
func TestOutcomeElsewhere(t *testing.T) {
	p := &corev1.Pod{Status: status("Succeeded", exited("main", 0, "Completed", `{"stored":true,"digest":"abc"}`))}
	l := look{pod: p, cmd: &engine.StartTask{}, now: noon}
	got := l.outcome().End
	if got == nil || !got.Stored || got.Digest != "abc" {
		t.Fatalf("%+v", got)
	}
	zero := 0
	r := l.conclude(&spec.Result{Phase: spec.Succeeded, ExitCode: &zero, Ran: true, Parameters: map[string]any{"n": json.Number("7")}}).Result
	if r.Phase != engine.SucceededPhase || r.Outputs.Parameters["n"] != int64(7) {
		t.Errorf("%+v", r)
	}
}
