import CurlClient
import NodeAPI
import RateLimits
import TestSupport
import Testing
import Core

@testable import SessionServer

@Suite("Session: the addresses of clients") struct ClientAddressesTests {
    private let clients = ClientAddresses(proxies: ["10.0.0.0/8", "2001:db8:ffff::/48"].compactMap { AddressRange($0) })

    private func network(_ peer: String, _ forwardedFor: String...) -> SenderNetwork {
        clients.network(peer: IPAddress(peer), forwardedFor: forwardedFor)
    }

    private func network(of address: String) -> SenderNetwork { SenderNetwork(IPAddress(address)) }

    @Test(arguments: [
        ("192.0.2.7", "192.0.2.7"), ("192.0.2.7:4711", "192.0.2.7"), ("2001:db8::7", "2001:db8::7"), ("[2001:db8::7]:80", "2001:db8::7"),
        // The client wrote the first entry itself.
        ("198.51.100.1, 192.0.2.7", "192.0.2.7"), ("198.51.100.1,192.0.2.7,10.2.3.4", "192.0.2.7"),
        ("192.0.2.7, 2001:db8:ffff::1", "192.0.2.7"),
    ])
    func theLastAddressThatIsNoProxysIsTheClient(header: String, client: String) {
        #expect(network("10.0.0.1", header) == network(of: client))
    }

    @Test func theHeaderCountsOnlyFromTrustedProxies() {
        #expect(network("203.0.113.9", "192.0.2.7") == network(of: "203.0.113.9"))
        #expect(ClientAddresses(proxies: []).network(peer: IPAddress("10.0.0.1"), forwardedFor: ["192.0.2.7"]) == network(of: "10.0.0.1"))
        // Several lines are one list.
        #expect(network("10.0.0.1", "198.51.100.1", "192.0.2.7") == network(of: "192.0.2.7"))
    }

    @Test(arguments: [
        "", " ", ",", "unknown", "198.51.100.1, _hidden", "[", "[]:1", "1.2.3.4.5", String(repeating: "10.0.0.2,", count: 10_000),
    ])
    func withoutAnAddressTheProxyIsThePayer(header: String) {
        #expect(network("10.0.0.1", header) == network(of: "10.0.0.1"))
        #expect(network("10.0.0.1") == network(of: "10.0.0.1"))
    }

    @Test func anUnnamedProxyIsNoticedByHalfOfTheRequests() {
        var watch = ProxyWatch()
        func minute(_ forwarded: Int, _ direct: Int) -> Bool {
            for _ in 0..<forwarded { watch.request(isForwarded: true) }
            for _ in 0..<direct { watch.request(isForwarded: false) }
            return watch.endMinute()
        }
        #expect(!minute(49, 51) && watch.finding == nil)
        #expect(minute(51, 49) && watch.finding?.verdict == .warn)
        // Without requests nothing changes. It is logged once.
        #expect(!minute(0, 0) && watch.isUnnamed)
        #expect(!minute(0, 10) && watch.finding == nil)
        #expect(!minute(10, 0) && watch.isUnnamed)
    }

    /// One network makes new subscriptions at twice the total's rate: others still find room.
    @Test func newSubscriptionsAreDividedAmongNetworks() {
        let limits = SessionLimits(.standard)
        let start = Timestamp(rawValue: 1_700_000_000_000_000_000)
        let attacker = network(of: "192.0.2.7")
        var generator = SeededGenerator(seed: 1)
        var (asked, admitted) = (0, 0)
        for tick in 0..<60_000 {
            let now = start + .milliseconds(tick)
            var senders = [attacker, attacker]
            let other = network(of: "198.51.\(tick / 100 % 200).1")
            if tick > 30_000, tick % 100 == 0 { senders.append(other) }
            for (number, sender) in senders.shuffled(using: &generator).enumerated() {
                let isAdmitted = limits.admitsNew([UInt8(number)], from: sender, at: now) == nil
                guard sender == other else { continue }
                asked += 1
                if isAdmitted { admitted += 1 }
            }
        }
        #expect(asked == 299 && admitted * 10 >= asked * 9, "\(admitted) of \(asked)")
    }
}

@Suite("Session: requests through a reverse proxy") struct ReverseProxyTests {
    @Test(arguments: [true, false])
    func aProxyThatIsNotTrustedIsAFinding(isTrusted: Bool) async throws {
        let fixture = try SessionNodeFixture()
        let account = try SessionAccount.sessionID()
        try await fixture.withNode(configure: { $0.proxies = isTrusted ? AddressRange.loopback : [] }) { node async throws in
            for _ in 0..<3 {
                let body = Array(account.json(account.subscription(SessionDevice())).utf8)
                #expect(
                    try await node.send("POST", "/subscribe", body, headers: [(name: "X-Forwarded-For", value: "192.0.2.7")]).status == 200)
            }
            let service = try #require(node.service)
            // Before the first minute ends, which begins a day.
            #expect(service.limitReport?.payers.map(\.kind) == ["source"])
            await service.recount()
            let finding = service.findings.first { $0.check == "session proxy" }
            #expect((finding == nil) == isTrusted)
        }
    }
}
