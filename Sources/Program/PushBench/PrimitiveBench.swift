/// Measures each primitive on one core and on all at once: two hyper-threads are slower than two cores.
struct PrimitiveBench: Sendable {
    let settings: BenchSettings

    func run() async throws -> [BenchResult] {
        try await settings.withFolder { folder in
            let meter = PrimitiveMeter(folder: folder, slice: .seconds(max(settings.seconds / 8, 0.002)))
            try meter.prepare()
            var measurements: [BenchResult] = []
            for (index, primitive) in Primitive.allCases.enumerated() {
                settings.progress("primitives: \(primitive.rawValue)", Double(index) / Double(Primitive.allCases.count))
                var measurement = BenchResult(name: primitive.rawValue)
                let alone = try await meter.measure(primitive, cores: 1)
                measurement.rate = alone.rate
                measurement.cpuMicroseconds = alone.cpuMicroseconds
                measurement.details["wallMicroseconds"] = alone.wallMicroseconds
                if !primitive.isSingle {
                    let together = try await meter.measure(primitive, cores: settings.cores)
                    measurement.details["cpuMicrosecondsOnAllCores"] = together.cpuMicroseconds
                    measurement.details["rateOnAllCores"] = together.rate
                }
                measurements.append(measurement)
            }
            return measurements
        }
    }
}
