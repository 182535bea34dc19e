package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/server"
)

// TestDeniedCallsOfProgramsAreRecorded: those of one minute once, and those of the next again.
func TestDeniedCallsOfProgramsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := memory.Open(t.Context(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = b.Close(context.Background()) }()
		all, err := mounts(b, admin.Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := func(path string) server.Mount {
			return all[slices.IndexFunc(all, func(m server.Mount) bool { return m.Path == path })]
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- at("/api/").Run(ctx) }()
		data, err := frame.Marshal(&frame.Place{Topic: "jobs"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r := httptest.NewRequest(http.MethodPost, "/v1/driver/"+frame.CallPurge, bytes.NewReader(data))
			r.Header.Set("Content-Type", frame.ContentType)
			at("/v1/").Handler.ServeHTTP(httptest.NewRecorder(),
				r.WithContext(auth.With(ctx, &auth.Identity{Name: "eve", Kind: auth.KindToken})))
			time.Sleep(3 * time.Minute)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := at("/v1/").Stop(t.Context()); err != nil {
			t.Error(err)
		}
		page, err := auth.NewActions(b).List(t.Context(), auth.ActionQuery{})
		if err != nil || len(page.Actions) != 3 {
			t.Errorf("recorded %+v, %v", page.Actions, err)
		}
	})
}
