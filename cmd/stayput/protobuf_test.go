package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stayput/stayput/inplace/apps"
)

// apiServer starts a server that answers as an API server does, in the first encoding that the client accepts. It returns the encodings by
// path.
func apiServer(t *testing.T, objects map[string]runtime.Object) (*rest.Config, map[string]string) {
	t.Helper()
	sent := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		media, _, _ := strings.Cut(strings.ReplaceAll(r.Header.Get("Accept"), " ", ""), ",")
		info, known := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme.Scheme).SupportedMediaTypes(), media)
		if !known || objects[r.URL.Path] == nil {
			http.Error(w, r.URL.Path+" as "+media, http.StatusNotFound)
			return
		}
		sent[r.URL.Path] = media
		w.Header().Set("Content-Type", media)
		if err := info.Serializer.Encode(objects[r.URL.Path], w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return over(&rest.Config{Host: server.URL}), sent
}

// TestProtobufWhereTypesAllow checks that pods and autoscalers come in protobuf, and that pods are the same as in JSON. Deployments come in
// JSON, and their templates stay as they were sent.
func TestProtobufWhereTypesAllow(t *testing.T) {
	own, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	web := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},` +
		`"spec":{"template":{"spec":{"unheardOf":1}}}}`
	config, sent := apiServer(t, map[string]runtime.Object{
		"/api/v1/namespaces/shop/pods/web": usual(1),
		"/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers": &autoscalingv2.HorizontalPodAutoscalerList{
			TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscalerList"},
			Items:    []autoscalingv2.HorizontalPodAutoscaler{{}}},
		"/apis/apps/v1/namespaces/shop/deployments/web": &runtime.Unknown{
			TypeMeta: runtime.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, Raw: []byte(web), ContentType: runtime.ContentTypeJSON},
	})
	c, err := client.New(config, client.Options{Scheme: own, Mapper: testrestmapper.TestOnlyStaticRESTMapper(own)})
	if err != nil {
		t.Fatal(err)
	}
	pod, deployment, key := &corev1.Pod{}, &apps.Deployment{}, client.ObjectKey{Namespace: "shop", Name: "web"}
	if err := c.Get(t.Context(), key, pod); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	var scalers autoscalingv2.HorizontalPodAutoscalerList
	if err := c.List(t.Context(), &scalers, client.InNamespace("shop")); err != nil || len(scalers.Items) != 1 {
		t.Errorf("%d autoscalers have come: %v", len(scalers.Items), err)
	}
	want := usual(1)
	if pod.TypeMeta = want.TypeMeta; !equality.Semantic.DeepEqual(pod, want) {
		t.Errorf("the pod is\n%+v\nwant\n%+v", pod, want)
	}
	if template, err := json.Marshal(deployment.Spec.Template); err != nil || !strings.Contains(string(template), "unheardOf") {
		t.Errorf("the template is %s, %v", template, err)
	}
	for path, media := range map[string]string{
		"pods": runtime.ContentTypeProtobuf, "horizontalpodautoscalers": runtime.ContentTypeProtobuf, "deployments": runtime.ContentTypeJSON,
	} {
		for asked, got := range sent {
			if strings.Contains(asked, path) && got != media {
				t.Errorf("%s came as %s, want %s", asked, got, media)
			}
		}
	}
	if len(sent) != 3 {
		t.Errorf("asked for %v", sent)
	}
}
