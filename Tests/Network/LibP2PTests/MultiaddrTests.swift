import TestSupport
import Testing

@testable import LibP2P

@Suite struct MultiaddrTests {
    /// Made by py-multiaddr.
    private static let known = [
        ("/ip4/127.0.0.1/tcp/60000", hex("047f00000106ea60")),
        ("/ip6/2001:db8::1/tcp/443", hex("2920010db80000000000000000000000010601bb")),
        (
            "/dns4/node-01.example.org/tcp/30303/p2p/16Uiu2HAmAR24Mbb6VuzoyUiGx42UenDkshENVDj4qnmmbabLvo31",
            hex(
                """
                36136e6f64652d30312e6578616d706c652e6f726706765fa503270025080212
                2102deb46d1504a0736e2e59ec335dac5363c84300707cb209f1afd93c4636f919e4
                """)
        ),
        ("/dns/a.example/tcp/1", hex("3509612e6578616d706c65060001")),
        ("/dns6/b.example/tcp/65535", hex("3709622e6578616d706c6506ffff")),
    ]

    @Test(arguments: known)
    func textAndBytesAreTheSameAddress(text: String, bytes: [UInt8]) throws {
        let address = try Multiaddr(text)
        #expect(address.encoded() == bytes)
        #expect(try Multiaddr(parsing: bytes) == address)
        #expect(address.description == text)
        #expect(try Multiaddr(text + "/") == address)
    }

    @Test func oldTextsSayIPFS() throws {
        let peer = "16Uiu2HAmAR24Mbb6VuzoyUiGx42UenDkshENVDj4qnmmbabLvo31"
        #expect(try Multiaddr("/ip4/1.2.3.4/tcp/1/ipfs/\(peer)").description == "/ip4/1.2.3.4/tcp/1/p2p/\(peer)")
    }

    @Test func thePeerComesAndGoes() throws {
        let address = try Multiaddr("/ip4/1.2.3.4/tcp/1")
        let peer = NodeKey.generate().peerID
        #expect(address.peerID == nil)
        #expect(address.with(peer).peerID == peer)
        #expect(address.with(peer).with(peer).withoutPeerID == address)
        #expect(address.with(peer).endpoint == Multiaddr.Endpoint(host: .address([1, 2, 3, 4]), port: 1))
        #expect(try Multiaddr("/dns4/a.example/tcp/2").endpoint == Multiaddr.Endpoint(host: .name("a.example", .ip4), port: 2))
        #expect(try Multiaddr("/tcp/2/ip4/1.2.3.4").endpoint == nil)
    }

    @Test(arguments: [
        "", "/", "ip4/1.2.3.4/tcp/1", "//", "/ip4", "/ip4/1.2.3", "/ip4/1.2.3.4/tcp", "/ip4/1.2.3.4/tcp/65536", "/ip4/1.2.3.4/tcp/+1",
        "/ip4/::1/tcp/1", "/ip6/1.2.3.4/tcp/1", "/dns4//tcp/1", "/dns4/a b/tcp/1", "/p2p/x", "/ip4/1.2.3.4//tcp/1",
        "/dns4/" + String(repeating: "a", count: 254), String(repeating: "/tcp/1", count: 200),
    ])
    func invalidAddressesAreRefused(text: String) {
        #expect(throws: MultiaddrError.self) { try Multiaddr(text) }
    }

    @Test func otherTransportsAreNamed() {
        #expect(throws: MultiaddrError.unsupported("udp")) { try Multiaddr("/ip4/1.2.3.4/udp/1/quic-v1") }
        #expect(throws: MultiaddrError.unsupported("code 273")) { try Multiaddr(parsing: [4, 1, 2, 3, 4, 0x91, 2, 0, 1]) }
    }

    @Test func damagedBytesTrapNothing() {
        var random = SeededGenerator(seed: 2)
        for _ in 0..<2_000 {
            for (_, bytes) in Self.known {
                guard let address = try? Multiaddr(parsing: random.damaged(bytes)) else { continue }
                #expect((try? Multiaddr(parsing: address.encoded())) == address)
                #expect((try? Multiaddr(address.description)) == address)
            }
        }
    }
}
