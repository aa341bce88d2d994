import setuptools


class Distribution(setuptools.Distribution):
    """Requires the kronos-client of the same checkout: both are made of one contract."""

    def finalize_options(self):
        super().finalize_options()
        self.install_requires = [*self.install_requires,
                                 f'kronos-client=={self.metadata.version}']
        self.metadata.install_requires = self.install_requires


setuptools.setup(setup_requires=['pbr>=6.0.0'], pbr=True, distclass=Distribution)
