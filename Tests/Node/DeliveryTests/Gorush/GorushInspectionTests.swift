import CurlClient
import Foundation
import TestSupport
import Testing

@testable import Delivery

/// Against a server on 127.0.0.1, and never with a notification.
struct GorushInspectionTests {
    private func inspect(
        path: String = "", _ reply: @escaping @Sendable (_ path: String) -> RawHTTPServer.Reply
    ) async throws -> (GorushInspection, [RawHTTPServer.Request]) {
        let server = try RawHTTPServer { reply(String($0.head.split(separator: " ")[1])) }
        defer { server.stop() }
        return (try await GorushInspection(client: CurlClient(), url: server.url + path), server.requests)
    }

    private static let yaml = """
        core:
          enabled: true
          port: "8088"
          sync: false
          feedback_hook_url: "http://127.0.0.1:9090/feedback"
          ssl:
            sync: true
        android:
          enabled: true
          credential: "{\\"private_key\\": \\"enabled: false\\"}"
        ios:
            enabled: false
            password: hush
        log:
          enabled: false
        """

    @Test func aGorush() async throws {
        let (found, requests) = try await inspect(path: "/prefix/") { path in
            switch path {
            case "/prefix/healthz": .status(200, headers: ["Date: Thu, 01 Jan 1970 00:00:00 GMT"])
            case "/prefix/version": .status(200, body: #"{"source":"x","version":"1.18.4\u001b"}"#)
            case "/prefix/api/config": .status(201, body: Self.yaml)
            case "/prefix/api/push": .status(400, body: #"{"code":400,"message":"Notifications field is empty."}"#)
            default: .status(404)
            }
        }
        #expect(found.healthStatus == 200)
        #expect(found.version == "1.18.4")
        #expect(
            found.configuration
                == GorushInspection.Configuration(isSync: false, isAPNEnabled: false, isFirebaseEnabled: true, hasFeedbackHook: true))
        #expect(found.dryPost == .understood)
        #expect((found.clockAhead ?? .zero) < .seconds(-1_000_000))
        #expect(requests.count == 4)
        #expect(requests.last?.body == Array(#"{"notifications":[]}"#.utf8))
    }

    @Test(arguments: [401, 404, 500]) func otherStatuses(status: Int) async throws {
        let (found, _) = try await inspect { _ in .status(status) }
        #expect(found.healthStatus == status)
        #expect(found.version == nil)
        #expect(found.configuration == nil)
        #expect(found.dryPost == .status(status))
        #expect(found.clockAhead == nil)
    }

    @Test func anotherServer() async throws {
        let (found, _) = try await inspect { path in path == "/api/push" ? .status(400, body: "what?") : .status(200, body: "<html>") }
        #expect(found.dryPost == .otherServer)
        #expect(found.version == nil)
        #expect(found.configuration == nil)
    }

    @Test func aWebPageForEveryRequest() async throws {
        let (found, _) = try await inspect { _ in .status(200, body: "\n<!DOCTYPE html><title>Sign in</title>") }
        #expect(found.dryPost == .otherServer)
        let (lenient, _) = try await inspect { _ in .status(200, body: "{}") }
        #expect(lenient.dryPost == .understood)
    }

    @Test func nobodyThere() async throws {
        let found = try await GorushInspection(client: CurlClient(), url: "http://127.0.0.1:\(try freePort())")
        #expect(found.healthStatus == nil)
        #expect(found.problem?.hasPrefix("no connection") == true)
        await #expect(throws: GorushError.self) { try await GorushInspection(client: CurlClient(), url: "ftp://x") }
    }

    @Test(arguments: ["", "core", "<html>\n<b: x>", "  core:\n", "core:\n\n:::\n  :\n", "ios:\n  enabled: true"])
    func strangeConfigurations(text: String) {
        let found = GorushInspection.Configuration(yaml: Array(text.utf8))
        #expect(found == nil || found?.isSync == nil)
    }
}
