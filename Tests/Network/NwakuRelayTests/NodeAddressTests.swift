import Testing

@testable import NwakuRelay
import Core

struct NodeAddressTests {
    @Test(arguments: [
        ("http://127.0.0.1:8645", "http://127.0.0.1:8645"), ("HTTPS://node.example/", "https://node.example"),
        ("http://[::1]:8645/rest/", "http://[::1]:8645/rest"),
    ])
    func takes(url: String, text: String) throws {
        #expect(try NodeAddress(url).description == text)
    }

    @Test(arguments: [
        "", "127.0.0.1:8645", "ftp://node", "http://", "http://node?x=1", "http://node#x", "http://node:99999",
    ])
    func refuses(url: String) {
        #expect { try NodeAddress(url) } throws: { ($0 as? NwakuRelayError)?.code == .invalidAddress }
    }

    @Test func refusesCredentialsWithoutRepeatingThem() {
        #expect {
            try NodeAddress("http://somebody:secret@node:8645")
        } throws: {
            ($0 as? NwakuRelayError)?.code == .credentialsInAddress && !"\($0)".contains("secret")
        }
    }

    @Test func encodesTopicsForPaths() {
        #expect(percentEncoded("/waku/2/rs/16/32") == "%2Fwaku%2F2%2Frs%2F16%2F32")
        #expect(percentEncoded("a b+é") == "a%20b%2B%C3%A9")
    }
}
