import Delivery
import NodeAPI
import PushNode
import TestSupport
import Testing
import WakuCrypto

@testable import WakuPushCommands

struct ArgumentsTests {
    @Test(arguments: [
        ("300ms", Duration.milliseconds(300)), ("5s", .seconds(5)), ("10m", .seconds(600)), ("24h", .seconds(86_400)),
        ("366d", .seconds(366 * 86_400)),
    ])
    func durations(text: String, duration: Duration) {
        #expect(DurationArgument(argument: text)?.duration == duration)
        #expect(DurationArgument(argument: text)?.defaultValueDescription == text)
    }

    @Test(arguments: ["", "s", "ms", "5", "0s", "-5s", "1.5s", "5 s", " 5s", "5S", "367d", "4294967296ms", "0x5s"])
    func wrongDurations(text: String) {
        #expect(DurationArgument(argument: text) == nil)
        // Where off is allowed, 0s means off.
        if text != "0s" { #expect(OptionalDurationArgument(argument: text) == nil) }
        #expect(SilenceArgument(argument: text) == nil)
    }

    @Test(arguments: [
        ["client", "query", "--timeout"], ["admin", "drain", "--timeout"], ["admin", "registrations", "list", "--older-than"],
        ["admin", "registrations", "list", "--newer-than"], ["admin", "subscriptions", "list", "--older-than"],
    ])
    func theAllowedFormOfADurationIsNamed(command: [String]) async throws {
        for text in ["10", "1.5s", "0s", ""] {
            let ended = try await run(command + [text])
            #expect(ended.status == 64 && ended.failure?.contains("': give \(DurationArgument.allowedValues)") == true, "\(ended.errors)")
        }
    }

    @Test func theFormOfATimeIsNamed() async throws {
        let ended = try await run("admin", "import", "status-go", "x", "--since", "yesterday")
        #expect(ended.status == 64 && ended.failure?.contains(TimeArgument.allowedValues) == true, "\(ended.errors)")
    }

    @Test func optionalDurations() {
        #expect(OptionalDurationArgument(argument: "off")?.defaultValueDescription == "off")
        for text in ["off", "0", "0ms", "0s"] { #expect(OptionalDurationArgument(argument: text).map(\.duration) == .some(nil)) }
        #expect(OptionalDurationArgument(argument: "2m")?.duration == .seconds(120))
        #expect(OptionalDurationArgument(argument: "2m")?.defaultValueDescription == "2m")
    }

    @Test func defaultDurationsAreThoseOfTheNode() {
        let node = NodeConfiguration(identity: .generate(), dataPath: "")
        #expect(Settings.gorushTimeout.standard.duration == GorushClient.standardTimeout)
        #expect(Settings.maxRequestAge.standard.duration == node.maximumRequestAge)
        #expect(Settings.replyDelay.standard.duration == node.replyDelay)
        #expect(Settings.unknownHold.standard.duration == node.unknownHold)
    }

    @Test func silenceAlarm() {
        #expect(SilenceArgument(argument: "auto")?.limit(isAlone: false) == .seconds(600))
        #expect(SilenceArgument(argument: "auto").map { $0.limit(isAlone: true) } == .some(nil))
        for text in ["off", "0"] { #expect(SilenceArgument(argument: text).map { $0.limit(isAlone: false) } == .some(nil)) }
        #expect(SilenceArgument(argument: "90s")?.limit(isAlone: true) == .seconds(90))
    }

    @Test func switches() {
        for text in ["on", "true", "yes", "1", "ON"] { #expect(SwitchArgument(argument: text) == .on) }
        for text in ["off", "false", "no", "0", "Off"] { #expect(SwitchArgument(argument: text) == .off) }
        for text in ["", "perhaps", "2"] { #expect(SwitchArgument(argument: text) == nil) }
    }

    @Test func addresses() {
        #expect(AddressArgument(argument: "127.0.0.1:9090")?.address == SocketAddress(host: "127.0.0.1", port: 9090))
        #expect(AddressArgument(argument: "[::1]:9090")?.defaultValueDescription == "[::1]:9090")
        for text in ["", "9090", ":9090", "::1:9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1"] {
            #expect(AddressArgument(argument: text) == nil, "\(text)")
        }
    }

    @Test func publicKeys() {
        let key = PrivateKey.generate().publicKey
        for digits in [key.hex, key.hex.uppercased(), hexString(key.compressed)] {
            #expect(PublicKeyArgument(argument: digits)?.key == key)
            #expect(PublicKeyArgument(argument: "0x" + digits)?.key == key)
        }
        for text in ["", "0x", "0x04", String(key.hex.dropLast()), key.hex + "00", "0x0x" + key.hex, "nonsense"] {
            #expect(PublicKeyArgument(argument: text) == nil, "\(text)")
        }
    }
}
