import Core
import TestSupport
import Testing

@testable import CurlClient

@Suite("Addresses are checked at the socket", .timeLimit(.minutes(5)))
struct RefusedAddressTests {
    private static func client(allowed: [String] = []) -> CurlClient {
        var configuration = CurlConfiguration()
        configuration.destinations = .publicAddresses(and: allowed.compactMap { AddressRange($0) })
        return CurlClient(configuration: configuration)
    }

    private static func failure(of host: String, port: UInt16 = 443, _ client: CurlClient) async -> HTTPError.Code? {
        do throws(HTTPError) {
            _ = try await client.send(
                HTTPRequest(method: "POST", url: "https://\(host):\(port)/", body: [], connectTimeout: .seconds(5), timeout: .seconds(60)))
            return nil
        } catch {
            return error.code
        }
    }

    /// The first and the last address of a network.
    private static func ends(_ network: AddressRange) -> [[UInt8]] {
        let first = network.bytes
        let last = first.indices.map { index in
            let kept = max(0, min(8, network.prefixLength - 8 * index))
            return first[index] | UInt8(truncatingIfNeeded: 0xFF >> kept)
        }
        return [first, last]
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The notations that URL parsers and resolvers accept for this IPv4 address, and the IPv6 forms that routers or the kernel map to it.
    private static func notations(_ bytes: [UInt8]) -> [String] {
        let (dotted, digits) = (bytes.map(String.init).joined(separator: "."), hex(bytes))
        let number = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let groups = "\(digits.prefix(4)):\(digits.suffix(4))"
        return [
            dotted, "\(number)", "0x\(digits)", bytes.map { "0\(String($0, radix: 8))" }.joined(separator: "."),
            bytes.map { "0x\(String($0, radix: 16))" }.joined(separator: "."), "\(bytes[0]).\(number & 0xFF_FFFF)",
            "\(bytes[0]).\(bytes[1]).\(number & 0xFFFF)", "[::ffff:\(dotted)]", "[::ffff:\(groups)]", "[::\(dotted)]",
            "[64:ff9b::\(dotted)]",
            "[2002:\(groups)::1]",
        ]
    }

    @Test("No socket is opened to an address of a refused range, in any notation", arguments: IPAddress.refused)
    func refused(_ network: AddressRange) async {
        let client = Self.client()
        for end in Self.ends(network) {
            let forms =
                end.count == 4
                ? Self.notations(end)
                : ["[" + stride(from: 0, to: 16, by: 2).map { Self.hex(end[$0..<$0 + 2]) }.joined(separator: ":") + "]"]
            for form in forms {
                let failure = await Self.failure(of: form, client)
                #expect(failure == .refusedAddress, "\(form): \(String(describing: failure))")
            }
        }
    }

    @Test("An allowed network is connected to, in each notation, and only it")
    func allowed() async throws {
        let port = try ReservedPort()
        let client = Self.client(allowed: ["127.0.0.1"])
        for form in Self.notations([127, 0, 0, 1]).prefix(7) + ["[::ffff:127.0.0.1]"] {
            let failure = await Self.failure(of: form, port: port.number, client)
            #expect(failure == .connect, "\(form): \(String(describing: failure))")
        }
        #expect(await Self.failure(of: "127.0.0.2", port: port.number, client) == .refusedAddress)
    }
}
