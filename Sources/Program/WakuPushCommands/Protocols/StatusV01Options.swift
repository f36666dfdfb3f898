import ArgumentParser
import NodeAPI
import NodeAssembly
import StatusV01Server
import Storage

/// Version 0.1 of Status' service. Off unless `--status-v0.1` is given.
struct StatusV01Options: ParsableArguments {
    @Flag(Settings.statusV01) var statusV01: Bool
    @Option(Settings.v01APNsTopic) var v01APNsTopic: String?
}

extension StatusV01Options: OptionalProtocolOptions {
    static let protocolName = ProtocolDescription.statusV01.name

    var isOn: Bool { statusV01 }
    var isServedWithoutRelay: Bool { false }
    var settings: [String: String] { [:] }

    private var topic: String { Settings.v01APNsTopic.value(v01APNsTopic) ?? "" }

    func apply(to configuration: inout ServerConfiguration) throws {
        guard topic.utf8.count <= 256, !topic.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw CommandFailure(.usage, "--v0.1-apns-topic is not a bundle id: give one such as im.status.ethereum")
        }
        guard isOn else {
            guard topic.isEmpty else { throw CommandFailure(.usage, "--v0.1-apns-topic has no effect without --status-v0.1") }
            return
        }
        var own = StatusPushV01.Configuration()
        own.apnsTopic = topic
        configuration.statusV01 = own
    }

    func check(_ failures: ConfigurationFailures) {}

    func findings(_ examination: ProtocolExamination) -> [Finding] {
        let isSpoken = examination.daemon.map { $0[Self.protocolName] != nil }
        let figures = (try? examination.store?.read(Records.figures())) ?? RecordFigures()
        let isOn = ServeOption.isGiven("status-v0.1") ? isOn : isSpoken ?? isOn
        return [
            V01Checks.stored(isOn: isOn, records: figures.records, devices: figures.devices.total),
            isOn ? examination.routing.flatMap { V01Checks.unserved(figures.devices, routing: $0, apnsTopic: topic) } : nil,
        ].compactMap(\.self)
    }
}
