import Core
import Testing

@Suite struct AddressRangeTests {
    @Test func blocks() throws {
        func block(_ text: String) throws -> String { try #require(IPAddress(text)).block.description }
        #expect(try block("192.0.2.77") == "192.0.2.0/24")
        #expect(try block("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64")
        // IPv4 in IPv6, as reported by a dual-stack socket.
        #expect(try block("::ffff:192.0.2.77") == "192.0.2.0/24")
        #expect(IPAddress("192.0.2") == nil && IPAddress("example.org") == nil)
    }

    @Test func rangesContainTheirAddresses() throws {
        let ranges = [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"), ("172.16.0.0/12", "172.31.9.9", "172.32.0.1"), ("fc00::/7", "fd00::1", "fe00::1"),
            ("10.1.0.0/16", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("::1", "::1", "::2"), ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("0.0.0.0/0", "8.8.8.8", "::1"),
        ]
        for (range, inside, outside) in ranges {
            let range = try #require(AddressRange(range))
            #expect(range.contains(try #require(IPAddress(inside))), "\(range)")
            #expect(!range.contains(try #require(IPAddress(outside))), "\(range)")
        }
        for text in ["", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.0/", "10.0.0/8", "a/8", "10.0.0.0/8/8", "10.0.0.0/+8", "/8"] {
            #expect(AddressRange(text) == nil, "\(text)")
        }
        #expect(AddressRange.loopback.count == 2 && AddressRange.privateNetworks.count == 6)
    }

    @Test func anExactRangeStartsWithTheAddressThatIsGiven() throws {
        for text in ["10.0.0.0/8", "10.0.0.1", "fd00::/8", "::1", "0.0.0.0/0"] {
            let range = AddressRange(exactly: text)
            #expect(range != nil && range == AddressRange(text), "\(text)")
        }
        for text in ["10.0.0.1/8", "fd00::1/8", "128.0.0.0/0"] {
            #expect(AddressRange(exactly: text) == nil && AddressRange(text) != nil, "\(text)")
        }
        #expect(try #require(AddressRange(exactly: "2001:db8:0:0::/32")).description == "2001:db8::/32")
    }

    @Test func addressesHaveFourOrSixteenBytes() {
        for count in 0...17 { #expect((IPAddress(bytes: Array(repeating: 1, count: count)) != nil) == (count == 4 || count == 16)) }
    }
}
