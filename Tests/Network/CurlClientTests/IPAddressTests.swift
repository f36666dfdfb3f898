import Core
import Testing

@testable import CurlClient

@Suite("Addresses that may be connected to for URLs of clients")
struct IPAddressTests {
    @Test(
        "No special-purpose address is public, in any form that carries it",
        arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255",
            "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.0.1", "192.168.255.255", "198.18.0.1",
            "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        ])
    func refusedIPv4(_ text: String) throws {
        let address = try #require(IPAddress(text))
        #expect(!address.isPublic)
        let hex = address.bytes.map { String($0 + 0, radix: 16) }.map { $0.count == 1 ? "0" + $0 : $0 }
        let forms = [
            "::ffff:\(text)", "::\(text)", "64:ff9b::\(text)", "2002:\(hex[0])\(hex[1]):\(hex[2])\(hex[3])::1",
        ]
        for form in forms { #expect(!(try #require(IPAddress(form)).isPublic), "\(form)") }
    }

    @Test(
        "No special-purpose IPv6 address is public",
        arguments: [
            "::", "::1", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1", "2001:db8::1", "3fff::1", "5f00::1", "fc00::1",
            "fd12:3456::1",
            "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1", "8000::1",
        ])
    func refusedIPv6(_ text: String) throws {
        #expect(!(try #require(IPAddress(text)).isPublic))
    }

    @Test(
        "Other addresses are public",
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "172.15.255.255",
            "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111",
            "2a00:1450::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:101:101::1",
        ])
    func publicAddresses(_ text: String) throws {
        #expect(try #require(IPAddress(text)).isPublic)
    }
}
