import HTTPService
import Testing

@Suite struct HostPolicyTests {
    private let policy = HostPolicy(names: ["push.example", "Waku-Push"])

    @Test(arguments: [
        "127.0.0.1", "127.0.0.1:9090", "192.0.2.7:80", "[::1]", "[::1]:9090", "[2001:db8::7]:80", "[::ffff:10.0.0.1]", "localhost",
        "localhost:9090", "LocalHost", "localhost.:9090", "node.localhost:1", "ip6-localhost",
    ])
    func loopbackNamesAndAddressesPass(host: String) {
        #expect(HostPolicy().permits(host))
        #expect(policy.permits(host))
    }

    @Test(arguments: ["push.example", "PUSH.example:9090", "push.example.", "waku-push:9090"])
    func configuredNamesArePermitted(host: String) {
        #expect(policy.permits(host))
        #expect(!HostPolicy().permits(host))
    }

    @Test(arguments: [
        "evil.example", "evil.example:9090", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost",
        "push.example.evil.example",
        "evil.push.example", "127.1", "0x7f.0.0.1", "127.0.0.1:80:80", "127.0.0.1:x", "[::1", "[evil.example]", "::1", "[::1]x",
        "evil@127.0.0.1", "127.0.0.1/", "local host", ":80", "é.example", String(repeating: "a", count: 300),
    ])
    func othersDoNot(host: String) {
        #expect(!policy.permits(host))
    }

    /// HTTP/1.0 has no Host header, and browsers do not use it.
    @Test func requestsWithoutAName() {
        #expect(policy.permits(nil))
        #expect(policy.permits(""))
    }

    @Test func namesAreChecked() {
        for name in ["push", "push.example", "waku_push-1", "10.0.0.1"] { #expect(HostPolicy.isName(name)) }
        for name in ["", "push:9090", "http://push", "push/", ".push", "[::1]", "*", "a b"] { #expect(!HostPolicy.isName(name)) }
    }
}
