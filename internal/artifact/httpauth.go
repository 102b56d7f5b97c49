package artifact

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// httpAuth is Argo's auth block of an http artifact.
type httpAuth struct {
	BasicAuth *struct {
		Username *secretKey `json:"usernameSecret"`
		Password *secretKey `json:"passwordSecret"`
	} `json:"basicAuth"`
	ClientCert *struct {
		Cert *secretKey `json:"clientCertSecret"`
		Key  *secretKey `json:"clientKeySecret"`
	} `json:"clientCert"`
	OAuth2 *struct {
		ID       *secretKey `json:"clientIDSecret"`
		Secret   *secretKey `json:"clientSecretSecret"`
		TokenURL *secretKey `json:"tokenURLSecret"`
		Scopes   []string   `json:"scopes"`
		Params   []struct {
			Key   string `json:"key"`
			Value string `json:"value"`
		} `json:"endpointParams"`
	} `json:"oauth2"`
}

// apply adds credentials to a request and gives the client to send it with.
func (a httpAuth) apply(ctx context.Context, req *http.Request, opts Options) (*http.Client, error) {
	client := opts.Client
	if client == nil {
		client = &http.Client{}
		if opts.Transport != nil {
			client.Transport = opts.Transport
		}
	}
	if a.BasicAuth != nil {
		user, err := a.BasicAuth.Username.read(opts, "usernameSecret")
		if err != nil {
			return nil, err
		}
		password, err := a.BasicAuth.Password.read(opts, "passwordSecret")
		if err != nil {
			return nil, err
		}
		req.SetBasicAuth(user, password)
	}
	if a.OAuth2 != nil {
		token, err := a.token(ctx, client, opts)
		if err != nil {
			return nil, fmt.Errorf("oauth2: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if a.ClientCert == nil {
		return client, nil
	}
	cert, err := a.ClientCert.Cert.read(opts, "clientCertSecret")
	if err != nil {
		return nil, err
	}
	key, err := a.ClientCert.Key.read(opts, "clientKeySecret")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	base, ok := client.Transport.(*http.Transport)
	if !ok {
		base, _ = http.DefaultTransport.(*http.Transport)
	}
	transport := base.Clone()
	if transport.TLSClientConfig == nil {
		transport.TLSClientConfig = &tls.Config{}
	}
	transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	own := *client
	own.Transport = transport
	return &own, nil
}

// token asks for an access token by client credentials (RFC 6749, 4.4).
func (a httpAuth) token(ctx context.Context, client *http.Client, opts Options) (string, error) {
	id, err := a.OAuth2.ID.read(opts, "clientIDSecret")
	if err != nil {
		return "", err
	}
	secret, err := a.OAuth2.Secret.read(opts, "clientSecretSecret")
	if err != nil {
		return "", err
	}
	address, err := a.OAuth2.TokenURL.read(opts, "tokenURLSecret")
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(a.OAuth2.Scopes) > 0 {
		form.Set("scope", strings.Join(a.OAuth2.Scopes, " "))
	}
	for _, p := range a.OAuth2.Params {
		form.Add(p.Key, p.Value)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: status %d", address, answer.StatusCode)
	}
	var given struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(body, &given); err != nil {
		return "", fmt.Errorf("%s: %w", address, err)
	}
	if given.AccessToken == "" {
		return "", errors.New(address + " gave no access_token")
	}
	return given.AccessToken, nil
}
