import Core
import Delivery
import NodeAPI
import Testing

@testable import StatusV01Server

@Suite("Doctor on version 0.1")
struct V01ChecksTests {
    @Test func itIsNotMentionedWhenItIsOffAndNothingIsStored() {
        #expect(V01Checks.stored(isOn: false, records: 0, devices: 0) == nil)
    }

    @Test func storedRecordsAreCounted() {
        let finding = V01Checks.stored(isOn: true, records: 3, devices: 6)
        #expect(finding?.check == "status-v0.1" && finding?.verdict == .ok && finding?.text == "on, 3 records with 6 devices")
    }

    @Test func storedRecordsOfAProtocolThatIsOffAreAWarning() {
        let finding = V01Checks.stored(isOn: false, records: 3, devices: 6)
        #expect(finding?.verdict == .warn && finding?.text.hasPrefix("off, but 3 records") == true)
    }

    @Test func devicesWithoutAnEndpointAreAWarning() {
        var devices = DeviceFigures()
        devices.registered = [.apn: 2, .firebase: 3]
        let routing = EndpointRouting([EndpointRule(apnTopics: ["im.status.ethereum"])])
        #expect(V01Checks.unserved(devices, routing: routing, apnsTopic: "im.status.ethereum") == nil)
        let finding = V01Checks.unserved(devices, routing: routing, apnsTopic: "")
        #expect(finding?.text == "Status 0.1: no endpoint for registered devices (2 apn): they are not notified")
    }
}
