package argo

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// WorkflowStatus is how far a workflow is.
type WorkflowStatus struct {
	Phase             string                `json:"phase,omitempty"`
	StartedAt         metav1.Time           `json:"startedAt"`
	FinishedAt        metav1.Time           `json:"finishedAt"`
	Progress          string                `json:"progress,omitempty"`
	Message           string                `json:"message,omitempty"`
	Nodes             map[string]NodeStatus `json:"nodes,omitempty"`
	Outputs           *Outputs              `json:"outputs,omitempty"`
	Conditions        []Condition           `json:"conditions,omitempty"`
	ResourcesDuration map[string]int64      `json:"resourcesDuration,omitempty"`

	EstimatedDuration           int64               `json:"estimatedDuration,omitempty"`
	CompressedNodes             string              `json:"compressedNodes,omitempty"`
	OffloadNodeStatusVersion    string              `json:"offloadNodeStatusVersion,omitempty"`
	StoredTemplates             map[string]Template `json:"storedTemplates,omitempty"`
	StoredWorkflowTemplateSpec  *WorkflowSpec       `json:"storedWorkflowTemplateSpec,omitempty"`
	PersistentVolumeClaims      []Any               `json:"persistentVolumeClaims,omitempty"`
	Synchronization             *Any                `json:"synchronization,omitempty"`
	ArtifactRepositoryRef       *Any                `json:"artifactRepositoryRef,omitempty"`
	ArtifactGCStatus            *Any                `json:"artifactGCStatus,omitempty"`
	TaskResultsCompletionStatus map[string]bool     `json:"taskResultsCompletionStatus,omitempty"`
}

// Condition is something to know about a workflow.
type Condition struct {
	Type    string `json:"type,omitempty"`
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// NodeStatus is how far one part of a workflow is.
type NodeStatus struct {
	ID                    string             `json:"id"`
	Name                  string             `json:"name"`
	DisplayName           string             `json:"displayName,omitempty"`
	Type                  string             `json:"type"`
	TemplateName          string             `json:"templateName,omitempty"`
	TemplateRef           *TemplateRef       `json:"templateRef,omitempty"`
	TemplateScope         string             `json:"templateScope,omitempty"`
	Phase                 string             `json:"phase,omitempty"`
	BoundaryID            string             `json:"boundaryID,omitempty"`
	Message               string             `json:"message,omitempty"`
	StartedAt             metav1.Time        `json:"startedAt"`
	FinishedAt            metav1.Time        `json:"finishedAt"`
	EstimatedDuration     int64              `json:"estimatedDuration,omitempty"`
	Progress              string             `json:"progress,omitempty"`
	ResourcesDuration     map[string]int64   `json:"resourcesDuration,omitempty"`
	PodIP                 string             `json:"podIP,omitempty"`
	Daemoned              *bool              `json:"daemoned,omitempty"`
	NodeFlag              *NodeFlag          `json:"nodeFlag,omitempty"`
	Inputs                *Inputs            `json:"inputs,omitempty"`
	Outputs               *Outputs           `json:"outputs,omitempty"`
	Children              []string           `json:"children,omitempty"`
	OutboundNodes         []string           `json:"outboundNodes,omitempty"`
	HostNodeName          string             `json:"hostNodeName,omitempty"`
	MemoizationStatus     *MemoizationStatus `json:"memoizationStatus,omitempty"`
	SynchronizationStatus *Any               `json:"synchronizationStatus,omitempty"`
	TaskResultSynced      *bool              `json:"taskResultSynced,omitempty"`
	FailedPodRestarts     int32              `json:"failedPodRestarts,omitempty"`
	RestartingPodUID      string             `json:"restartingPodUID,omitempty"`
}

// NodeFlag marks hooks and attempts.
type NodeFlag struct {
	Hooked  bool `json:"hooked,omitempty"`
	Retried bool `json:"retried,omitempty"`
}

// MemoizationStatus says whether memoized outputs stood in.
type MemoizationStatus struct {
	Hit       bool   `json:"hit"`
	Key       string `json:"key"`
	CacheName string `json:"cacheName"`
}
