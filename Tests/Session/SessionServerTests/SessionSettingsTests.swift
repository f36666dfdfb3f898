import Core
import Delivery
import NodeAssembly
import NodeAPI
import SessionProtocol
import Testing
import WakuCrypto

@testable import SessionServer

struct SessionSettingsTests {
    private let identity = PrivateKey.generate()

    private func settings(onionKey number: UInt8?, apnsTopic: String = "") throws -> [String: String] {
        var configuration = ServerConfiguration(identity: identity, dataPath: "data")
        if let number {
            let sodium = try Sodium.load()
            let key = try #require(OnionKey(SecretBytes(repeatElement(number, count: 32)), sodium: sodium))
            var session = SessionPush.Configuration(FakeMonitor(), onionKey: key, sodium: sodium)
            session.apnsTopic = apnsTopic
            configuration.session = session
        }
        return configuration.sharedEndpoints([EndpointRule()])
    }

    @Test("Nodes compare the public keys for onion requests; one without Session has none")
    func onionKey() throws {
        let (first, other, none) = (try settings(onionKey: 7), try settings(onionKey: 8), try settings(onionKey: nil))
        #expect(try settings(onionKey: 7) == first)
        #expect(Set(first.filter { other[$0.key] != $0.value }.keys) == ["--session-onion-key"])
        #expect(none["--pubsub-topic"] == "/waku/2/rs/16/32")
        #expect(none["--session-onion-key"] == nil && none["--session-http"] == "off")
    }

    @Test("Nodes compare the topic of Session's iOS apps")
    func topic() throws {
        let (named, without) = (try settings(onionKey: 7, apnsTopic: "com.session"), try settings(onionKey: 7))
        #expect(named.filter { without[$0.key] != $0.value } == ["--session-apns-topic": "com.session"])
        #expect(without["--session-apns-topic"] == "none")
        #expect(try settings(onionKey: nil)["--session-apns-topic"] == nil)
    }
}
