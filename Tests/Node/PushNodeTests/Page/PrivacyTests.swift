import NodeAPI
import CurlClient
import Foundation
import Delivery
import NodeAssembly
import NodeMetrics
import PushClient
import Core
import StatusProtocol
import TestSupport
import Testing
import Waku
import WakuCrypto

@testable import PushNode

@Suite("Metrics and status page contain no secrets")
struct PrivacyTests {
    @Test("No token, key or body of a run is in /metrics, / or /status.json, in any form")
    func endpoints() async throws {
        let fixture = try NodeFixture()
        let bob = TestClient(of: fixture.identity.publicKey, accessToken: AccessToken("2c1d8f7e-6b5a-4c39-9a61-d7e0b1c2a3f4"))
        let token = "5ec2e7de71ce70ce5ec2e7"
        let (body, chat, messageID) = (randomBytes(48), randomBytes(64), randomBytes(32))
        let asker = PrivateKey.generate()
        try await fixture.withNode(configure: {
            $0.httpAddress = SocketAddress(host: "127.0.0.1", port: 0)
            $0.awaitLimit = .milliseconds(300)
        }) { node async throws in
            #expect(try await node.register(bob, token: token) == nil)
            #expect(try await node.register(bob, token: token) == .versionMismatch)
            let entry = bob.notification {
                $0.message = body
                $0.chatID = chat
            }
            @Sendable func ask() async throws {
                try await node.withClient(asker) { client in
                    _ = try await client.query(bob.identity.publicKey, at: node.server, timeout: .seconds(60))
                    _ = try await client.notify([entry], messageID: messageID, at: node.server, timeout: .seconds(60))
                }
            }
            try await ask()
            node.gorush.answer(.accepted, verdict: .dead)
            _ = try await node.notify(bob)
            _ = try await node.register(bob, version: 2, token: token)
            node.gorush.answer(.failed(retryAfter: nil))
            _ = try await node.notify(bob)
            try await eventually { try await node.scrape()[.alarmActive, "alarm=\"gorush_given_up\""] == 1 }

            var secrets: [[UInt8]] = [Array(token.utf8), bob.accessToken.bytes, body, chat, messageID]
            for key in [bob.identity, asker, fixture.identity] {
                secrets += [
                    key.withBytes { Array($0) }, key.publicKey.uncompressed, key.publicKey.compressed, KeyHash(of: key.publicKey).bytes,
                ]
            }
            for path in ["/metrics", "/", "/status.json", "/readyz"] {
                let found = try await node.get(path).body
                let text = String(decoding: found, as: UTF8.self).lowercased()
                #expect(text.count > 20)
                for secret in secrets {
                    #expect(!text.contains(hexString(secret)), "\(path)")
                    #expect(!text.contains(hexString(Array(secret.prefix(8)))), "\(path)")
                    #expect(!text.contains(Data(secret).base64EncodedString().lowercased().prefix(16)), "\(path)")
                    #expect(found.firstRange(of: secret) == nil, "\(path)")
                }
            }
        }
    }
}
