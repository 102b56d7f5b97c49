package argo

import corev1 "k8s.io/api/core/v1"

// ArtifactLocation says where an artifact lies: at most one of the stores is set.
type ArtifactLocation struct {
	ArchiveLogs *bool                `json:"archiveLogs,omitempty"`
	S3          *S3Artifact          `json:"s3,omitempty"`
	Git         *GitArtifact         `json:"git,omitempty"`
	HTTP        *HTTPArtifact        `json:"http,omitempty"`
	Artifactory *ArtifactoryArtifact `json:"artifactory,omitempty"`
	HDFS        *HDFSArtifact        `json:"hdfs,omitempty"`
	Raw         *RawArtifact         `json:"raw,omitempty"`
	OSS         *OSSArtifact         `json:"oss,omitempty"`
	GCS         *GCSArtifact         `json:"gcs,omitempty"`
	Azure       *AzureArtifact       `json:"azure,omitempty"`
	Plugin      *PluginArtifact      `json:"plugin,omitempty"`
	// Folder (ours) is a place in a file system.
	Folder *FolderArtifact `json:"folder,omitempty"`
}

// FolderArtifact is a file or folder on this machine.
type FolderArtifact struct {
	Path string `json:"path"`
}

// S3Artifact is an object in an S3 bucket.
type S3Artifact struct {
	Endpoint                 string                    `json:"endpoint,omitempty"`
	Bucket                   string                    `json:"bucket,omitempty"`
	Region                   string                    `json:"region,omitempty"`
	Insecure                 *bool                     `json:"insecure,omitempty"`
	AccessKeySecret          *corev1.SecretKeySelector `json:"accessKeySecret,omitempty"`
	SecretKeySecret          *corev1.SecretKeySelector `json:"secretKeySecret,omitempty"`
	SessionTokenSecret       *corev1.SecretKeySelector `json:"sessionTokenSecret,omitempty"`
	RoleARN                  string                    `json:"roleARN,omitempty"`
	UseSDKCreds              bool                      `json:"useSDKCreds,omitempty"`
	CreateBucketIfNotPresent *struct {
		ObjectLocking bool `json:"objectLocking,omitempty"`
	} `json:"createBucketIfNotPresent,omitempty"`
	EncryptionOptions *S3EncryptionOptions      `json:"encryptionOptions,omitempty"`
	CASecret          *corev1.SecretKeySelector `json:"caSecret,omitempty"`
	AddressingStyle   string                    `json:"addressingStyle,omitempty"`
	Key               string                    `json:"key,omitempty"`
}

// S3EncryptionOptions ask the bucket to encrypt.
type S3EncryptionOptions struct {
	KmsKeyID                    string                    `json:"kmsKeyId,omitempty"`
	KmsEncryptionContext        string                    `json:"kmsEncryptionContext,omitempty"`
	EnableEncryption            bool                      `json:"enableEncryption,omitempty"`
	ServerSideCustomerKeySecret *corev1.SecretKeySelector `json:"serverSideCustomerKeySecret,omitempty"`
}

// GitArtifact is a checkout of a repository.
type GitArtifact struct {
	Repo                  string                    `json:"repo"`
	Revision              string                    `json:"revision,omitempty"`
	Depth                 *uint64                   `json:"depth,omitempty"`
	Fetch                 []string                  `json:"fetch,omitempty"`
	UsernameSecret        *corev1.SecretKeySelector `json:"usernameSecret,omitempty"`
	PasswordSecret        *corev1.SecretKeySelector `json:"passwordSecret,omitempty"`
	SSHPrivateKeySecret   *corev1.SecretKeySelector `json:"sshPrivateKeySecret,omitempty"`
	InsecureIgnoreHostKey bool                      `json:"insecureIgnoreHostKey,omitempty"`
	DisableSubmodules     bool                      `json:"disableSubmodules,omitempty"`
	SingleBranch          bool                      `json:"singleBranch,omitempty"`
	Branch                string                    `json:"branch,omitempty"`
	InsecureSkipTLS       bool                      `json:"insecureSkipTLS,omitempty"`
}

// HTTPArtifact is what a URL gives, or takes.
type HTTPArtifact struct {
	URL               string       `json:"url"`
	Headers           []NamedValue `json:"headers,omitempty"`
	Auth              *HTTPAuth    `json:"auth,omitempty"`
	SaveStreamViaFile bool         `json:"saveStreamViaFile,omitempty"`
}

// NamedValue is a header.
type NamedValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// HTTPAuth says how to prove who asks.
type HTTPAuth struct {
	ClientCert struct {
		ClientCertSecret *corev1.SecretKeySelector `json:"clientCertSecret,omitempty"`
		ClientKeySecret  *corev1.SecretKeySelector `json:"clientKeySecret,omitempty"`
	} `json:"clientCert,omitzero"`
	OAuth2 struct {
		ClientIDSecret     *corev1.SecretKeySelector `json:"clientIDSecret,omitempty"`
		ClientSecretSecret *corev1.SecretKeySelector `json:"clientSecretSecret,omitempty"`
		TokenURLSecret     *corev1.SecretKeySelector `json:"tokenURLSecret,omitempty"`
		Scopes             []string                  `json:"scopes,omitempty"`
		EndpointParams     []struct {
			Key   string `json:"key"`
			Value string `json:"value,omitempty"`
		} `json:"endpointParams,omitempty"`
	} `json:"oauth2,omitzero"`
	BasicAuth UserAndPassword `json:"basicAuth,omitzero"`
}

// UserAndPassword are in Secrets.
type UserAndPassword struct {
	UsernameSecret *corev1.SecretKeySelector `json:"usernameSecret,omitempty"`
	PasswordSecret *corev1.SecretKeySelector `json:"passwordSecret,omitempty"`
}

// ArtifactoryArtifact is a file in Artifactory.
type ArtifactoryArtifact struct {
	URL             string `json:"url"`
	UserAndPassword `json:",inline"`
}

// HDFSArtifact is a file in HDFS.
type HDFSArtifact struct {
	KrbCCacheSecret         *corev1.SecretKeySelector    `json:"krbCCacheSecret,omitempty"`
	KrbKeytabSecret         *corev1.SecretKeySelector    `json:"krbKeytabSecret,omitempty"`
	KrbUsername             string                       `json:"krbUsername,omitempty"`
	KrbRealm                string                       `json:"krbRealm,omitempty"`
	KrbConfigConfigMap      *corev1.ConfigMapKeySelector `json:"krbConfigConfigMap,omitempty"`
	KrbServicePrincipalName string                       `json:"krbServicePrincipalName,omitempty"`
	Addresses               []string                     `json:"addresses,omitempty"`
	HDFSUser                string                       `json:"hdfsUser,omitempty"`
	DataTransferProtection  string                       `json:"dataTransferProtection,omitempty"`
	Path                    string                       `json:"path"`
	Force                   bool                         `json:"force,omitempty"`
}

// RawArtifact is a text in the manifest itself.
type RawArtifact struct {
	Data string `json:"data"`
}

// OSSArtifact is an object in Alibaba's store.
type OSSArtifact struct {
	Endpoint                 string                    `json:"endpoint,omitempty"`
	Bucket                   string                    `json:"bucket,omitempty"`
	AccessKeySecret          *corev1.SecretKeySelector `json:"accessKeySecret,omitempty"`
	SecretKeySecret          *corev1.SecretKeySelector `json:"secretKeySecret,omitempty"`
	CreateBucketIfNotPresent bool                      `json:"createBucketIfNotPresent,omitempty"`
	SecurityToken            string                    `json:"securityToken,omitempty"`
	LifecycleRule            *struct {
		MarkInfrequentAccessAfterDays int32 `json:"markInfrequentAccessAfterDays,omitempty"`
		MarkDeletionAfterDays         int32 `json:"markDeletionAfterDays,omitempty"`
	} `json:"lifecycleRule,omitempty"`
	UseSDKCreds bool   `json:"useSDKCreds,omitempty"`
	Key         string `json:"key"`
}

// GCSArtifact is an object in Google's store.
type GCSArtifact struct {
	Bucket                  string                    `json:"bucket,omitempty"`
	ServiceAccountKeySecret *corev1.SecretKeySelector `json:"serviceAccountKeySecret,omitempty"`
	Key                     string                    `json:"key"`
}

// AzureArtifact is a blob in Azure's store.
type AzureArtifact struct {
	Endpoint         string                    `json:"endpoint"`
	Container        string                    `json:"container"`
	AccountKeySecret *corev1.SecretKeySelector `json:"accountKeySecret,omitempty"`
	UseSDKCreds      bool                      `json:"useSDKCreds,omitempty"`
	Blob             string                    `json:"blob"`
}

// PluginArtifact is handled by an artifact driver plugin.
type PluginArtifact struct {
	Name                     string `json:"name,omitempty"`
	Configuration            string `json:"configuration,omitempty"`
	ConnectionTimeoutSeconds int32  `json:"connectionTimeoutSeconds,omitempty"`
	Key                      string `json:"key,omitempty"`
}
